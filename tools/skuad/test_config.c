// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Configuration: what is taken, and which line a refusal says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"

static struct config config;
static struct config_error err;

static int clear(void **state)
{
	(void)state;
	memset(&config, 0, sizeof(config));
	memset(&err, 0, sizeof(err));
	return 0;
}

static bool add_file(const char *text)
{
	char name[] = "/tmp/skuad-test-XXXXXX";
	int fd = mkstemp(name);
	bool good;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	good = config_add_file(&config, name, &err);
	unlink(name);
	return good;
}

static void assert_error(const char *part)
{
	if (!strstr(err.text, part))
		print_message("'%s' does not say '%s'\n", err.text, part);
	assert_non_null(strstr(err.text, part));
	assert_null(strchr(err.text, '\n'));
}

static void an_option_gives_a_device(void **state)
{
	static const uint8_t mac[] = { 0x52, 0x54, 0, 0xab, 0xCD, 1 };

	(void)state;
	assert_true(config_add_option(&config, "name=skua0,socket=/tmp/s0,mac=52:54:00:ab:CD:01,"
				      "link=wire:a", &err));
	assert_true(config_finish(&config, &err));
	assert_int_equal(config.n, 1);
	assert_string_equal(config.device[0].name, "skua0");
	assert_string_equal(config.device[0].socket, "/tmp/s0");
	assert_string_equal(config.device[0].link, "wire:a");
	assert_memory_equal(config.device[0].mac, mac, 6);
	assert_false(config.device[0].spoof);
	assert_false(config.device[0].persistent);
	assert_int_equal(config.device[0].max_pages, 0);
	assert_true(config_add_option(&config, "name=b,socket=/tmp/b,link=wire:a,max_pages=1000", &err));
	assert_int_equal(config.device[1].max_pages, 1000);
}

static void only_on_is_on(void **state)
{
	(void)state;
	assert_true(config_add_option(&config, "name=a,socket=/tmp/a,link=wire:a,spoof=on,persistent=off", &err));
	assert_true(config_add_option(&config, "name=b,socket=/tmp/b,link=wire:a,spoof=off,persistent=on", &err));
	assert_true(config_finish(&config, &err));
	assert_true(config.device[0].spoof);
	assert_false(config.device[0].persistent);
	assert_false(config.device[1].spoof);
	assert_true(config.device[1].persistent);
}

static void a_file_gives_devices(void **state)
{
	(void)state;
	assert_true(add_file("# two NICs\n\n[device skua0]\nsocket = /tmp/a,b = c\nlink=wire:a\n"
			     "; another\n[device  skua1 ]\r\n\tsocket=/tmp/s1\n link = wire:a\n"
			     "mac = 02:00:00:00:00:01"));
	assert_true(config_finish(&config, &err));
	assert_int_equal(config.n, 2);
	assert_string_equal(config.device[0].socket, "/tmp/a,b = c");
	assert_string_equal(config.device[1].name, "skua1");
	assert_int_equal(config.device[1].mac[5], 1);
}

static void a_missing_mac_is_made_from_the_name_alone(void **state)
{
	uint8_t first[6];

	(void)state;
	config_add_option(&config, "name=skua0,socket=/tmp/s0,link=wire:a", &err);
	config_add_option(&config, "name=skua1,socket=/tmp/s1,link=wire:a", &err);
	assert_true(config_finish(&config, &err));
	assert_int_equal(config.device[0].mac[0], 0x02);
	assert_memory_not_equal(config.device[0].mac, config.device[1].mac, 6);
	memcpy(first, config.device[0].mac, 6);

	clear(NULL);
	config_add_option(&config, "link=wire:b,socket=/run/x,name=skua0", &err);
	assert_true(config_finish(&config, &err));
	assert_memory_equal(config.device[0].mac, first, 6);
}

static void bad_options_are_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "KEY=VALUE" },
		{ "name", "KEY=VALUE" },
		{ "name=skua0,", "KEY=VALUE" },
		{ "name=", "name has no value" },
		{ "name=a b", "bad name" },
		{ "name=../x", "bad name" },
		{ "name=abcdefghijklmnopqrstuvwxyzabcdef", "bad name" },
		{ "name=a,name=b", "name is given twice" },
		{ "speed=9", "unknown key 'speed'" },
		{ "socket=/tmp/s,link=wire:a", "has no name" },
		{ "name=a,link=wire:a", "no socket" },
		{ "name=a,socket=/tmp/s", "no link" },
		{ "name=a,link=wifi:x", "bad link 'wifi:x': want wire:, stream:, dgram:, udp: or tap:" },
		{ "name=a,link=wire:", "bad link" },
		{ "name=a,link=wire:a b", "bad link" },
		{ "name=a,link=tap:", "bad link" },
		{ "name=a,link=tap:sixteen-letters-", "bad link" },
		{ "name=a,link=tap:a:b", "there is unexpected text at the end" },
		{ "name=a,link=stream:", "an address is missing" },
		{ "name=a,link=stream:listen:", "an address is missing" },
		{ "name=a,link=stream:/a:/b", "there is unexpected text at the end" },
		{ "name=a,link=stream:localhost:1", "not a path or a numeric IPv4 address" },
		{ "name=a,link=stream:127.0.0.1", "want a port" },
		{ "name=a,link=stream:127.0.0.1:0", "a port must be 1 to 65535" },
		{ "name=a,link=stream:127.0.0.1:65536", "a port must be 1 to 65535" },
		{ "name=a,link=stream:127.0.0.1:-1", "want a port" },
		{ "name=a,link=stream:[::1:1", "want [IPV6]:PORT" },
		{ "name=a,link=stream:[1.2.3.4]:1", "not a numeric IPv6 address" },
		{ "name=a,link=dgram:/a", "an address is missing" },
		{ "name=a,link=dgram:/a:127.0.0.1:1", "both addresses must be of the same kind" },
		{ "name=a,link=udp:/a:/b", "udp: takes hosts, not paths" },
		{ "name=a,mac=52:54:00:00:00", "bad mac" },
		{ "name=a,mac=52:54:00:00:00:0g", "bad mac" },
		{ "name=a,mac=52:54:00:00:00:001", "bad mac" },
		{ "name=a,mac=52-54-00-00-00-01", "bad mac" },
		{ "name=a,mac=+2:54:00:00:00:01", "bad mac" },
		{ "name=a,mac=01:00:5e:00:00:01", "not a unicast" },
		{ "name=a,mac=00:00:00:00:00:00", "not a unicast" },
		{ "name=a,spoof=yes", "bad spoof 'yes': want on or off" },
		{ "name=a,persistent=1", "bad persistent '1': want on or off" },
		{ "name=a,max_pages=0", "bad max_pages '0': want 1 to 41943040" },
		{ "name=a,max_pages=41943041", "bad max_pages" },
		{ "name=a,max_pages=-1", "bad max_pages" },
		{ "name=a,max_pages=1k", "bad max_pages" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		clear(NULL);
		assert_false(config_add_option(&config, bad[i].text, &err));
		assert_error(bad[i].says);
	}
}

static void bad_files_are_refused_by_line(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "socket = /tmp/s\n", ":1: a key comes before" },
		{ "\n[skua0]\n", ":2: want [device NAME]" },
		{ "[device]\n", ":1: want [device NAME]" },
		{ "[device a\n", ":1: want [device NAME]" },
		{ "[device ]\n", ":1: bad name" },
		{ "[device a]\nname = b\n", ":2: name is given twice" },
		{ "[device a]\nsocket = /tmp/s\n[device b]\n", ":3: device a has no link" },
		{ "[device a]\nsocket = /tmp/s\nnonsense\n", ":3: want KEY = VALUE" },
		{ "[device a]\nsocket =\n", ":2: socket has no value" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		clear(NULL);
		assert_false(add_file(bad[i].text));
		assert_error(bad[i].says);
	}
	assert_false(config_add_file(&config, "/nowhere/skuad.conf", &err));
	assert_error("No such file");
	assert_false(config_add_file(&config, "/tmp", &err));
	assert_error("Is a directory");
}

static void long_input_is_refused(void **state)
{
	char text[3000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_false(config_add_option(&config, text, &err));
	assert_error("longer than");
	assert_false(add_file(text));
	assert_error("longer than");
	memcpy(text, "socket=", 7);
	text[500] = '\0';
	assert_false(config_add_option(&config, text, &err));
	assert_error("socket path longer");
}

static void nothing_may_be_shared(void **state)
{
	static const char first[] = "name=a,socket=/tmp/a,link=wire:a,mac=02:00:00:00:00:01";
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "name=a,socket=/tmp/b,link=wire:a", "two devices are named a" },
		{ "name=b,socket=/tmp/a,link=wire:a", "same socket" },
		{ "name=b,socket=/tmp/b,link=wire:a,mac=02:00:00:00:00:01", "same mac" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		clear(NULL);
		assert_true(config_add_option(&config, first, &err));
		assert_true(config_add_option(&config, bad[i].text, &err));
		assert_false(config_finish(&config, &err));
		assert_error(bad[i].says);
	}
}

static void no_device_is_an_error(void **state)
{
	(void)state;
	assert_false(config_finish(&config, &err));
	assert_error("no device");
}

static void devices_have_a_limit(void **state)
{
	char text[64];

	(void)state;
	for (int i = 0; i < CONFIG_MAX_DEVICES; i++) {
		snprintf(text, sizeof(text), "name=s%d,socket=/tmp/s%d,link=wire:a", i, i);
		assert_true(config_add_option(&config, text, &err));
	}
	assert_true(config_finish(&config, &err));
	assert_false(config_add_option(&config, "name=x,socket=/x,link=wire:a", &err));
	assert_error("more than 256 devices");
}

static void every_kind_of_link_is_taken(void **state)
{
	static const char *const links[] = {
		"wire:a", "tap:skua0", "stream:/tmp/s", "stream:./s", "stream:listen:/tmp/s",
		"stream:127.0.0.1:4000", "stream:listen:[::1]:4000", "dgram:/tmp/a:/tmp/b",
		"dgram:127.0.0.1:1:127.0.0.1:65535", "dgram:[::1]:1:[fe80::1]:2",
		"udp:192.0.2.1:4789:192.0.2.2:4789", "udp:[::1]:1:[::1]:2",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		char text[400];

		config.n = 0;
		snprintf(text, sizeof(text), "name=a,socket=/tmp/s,link=%s", links[i]);
		if (!config_add_option(&config, text, &err))
			fail_msg("%s: %s", links[i], err.text);
		assert_string_equal(config.device[0].link, links[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_option_gives_a_device, clear),
		cmocka_unit_test_setup(only_on_is_on, clear),
		cmocka_unit_test_setup(a_file_gives_devices, clear),
		cmocka_unit_test_setup(a_missing_mac_is_made_from_the_name_alone, clear),
		cmocka_unit_test_setup(bad_options_are_refused, clear),
		cmocka_unit_test_setup(every_kind_of_link_is_taken, clear),
		cmocka_unit_test_setup(bad_files_are_refused_by_line, clear),
		cmocka_unit_test_setup(long_input_is_refused, clear),
		cmocka_unit_test_setup(nothing_may_be_shared, clear),
		cmocka_unit_test_setup(no_device_is_an_error, clear),
		cmocka_unit_test_setup(devices_have_a_limit, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
