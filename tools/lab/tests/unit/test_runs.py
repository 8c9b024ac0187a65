"""Runs of guests, without guests."""

import unittest
from unittest import mock

from skualab.host import say
from skualab.runs import pair, perftest


class TwoGuests(unittest.TestCase):
    """What fails in the thread of a guest is the outcome of its side, not a traceback."""

    def side(self, **play):
        side = pair.Side.__new__(pair.Side)
        side.name, side.command, side.outcome = 'left', 'true', None
        side.play = mock.Mock(**play)
        side.play.guest.fault = None
        return side

    def test_a_guest_that_cannot_be_started(self):
        side = self.side(**{'start.side_effect': OSError(28, 'No space left on device')})
        self.assertFalse(pair.boot([side], None, 0))
        self.assertEqual(side.outcome, (125, 'lab', 'a disk: No space left on device: make room there'))

    def test_output_that_cannot_be_written(self):
        side = self.side(**{'script.return_value': 'true'})
        side.play.guest.run.side_effect = lambda command, end, out, err: out(b'no end of line')
        writer = mock.Mock(side_effect=BrokenPipeError(32, 'Broken pipe'))
        side.work(0, (writer, writer))
        self.assertEqual(side.outcome, (125, 'lab', 'nobody reads what the lab prints any more'))


class Figures(unittest.TestCase):
    """The output of perftest and ibv_rc_pingpong."""

    def test_bandwidth(self):
        text = ' #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n' \
               ' 65536      5000             25703.54            1000.00             0.259564\n'
        self.assertEqual(perftest.result('ib_write_bw', 65536, text), 1000 * 2**20)

    def test_latency(self):
        text = ' 8       1000          7.04           15.92        8.50     	       7.27        	0.61\n'
        self.assertAlmostEqual(perftest.result('ib_read_lat', 8, text), 8.5e-6)

    def test_pingpong(self):
        text = '8192000 bytes in 0.43 seconds = 153.26 Mbit/sec\n1000 iters in 0.43 seconds = 427.61 usec/iter\n'
        self.assertAlmostEqual(perftest.result('ibv_rc_pingpong', 4096, text), 427.61e-6)

    def test_no_figure(self):
        with self.assertRaises(say.LabError):
            perftest.result('ib_read_lat', 8, 'Unable to open device\n')
