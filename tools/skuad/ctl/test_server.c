// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The control socket: requests with their answers, and clients that misbehave.
 */
#include "ctl/test_double.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <json-c/json.h>

#include "base/log.h"
#include "ctl/client.h"

/* Objects of JSON that each thread made and has not put, and the most of those on the server's. */
static _Thread_local int live_objects;
static _Atomic int most_objects;
static pthread_t client_thread;

/* In place of json-c's. */
struct json_object *json_object_new_object(void)
{
	struct json_object *(*make)(void);

	*(void **)&make = dlsym(RTLD_NEXT, "json_object_new_object");
	if (++live_objects > most_objects && !pthread_equal(pthread_self(), client_thread))
		most_objects = live_objects;
	return make();
}

int json_object_put(struct json_object *object)
{
	int (*put)(struct json_object *);

	*(void **)&put = dlsym(RTLD_NEXT, "json_object_put");
	live_objects -= json_object_is_type(object, json_type_object);
	return put(object);
}

static struct ctl_client connected(void)
{
	struct ctl_client c;

	assert_true(ctl_client_connect(&c, path));
	return c;
}

static void send_text(struct ctl_client *c, const char *text)
{
	assert_int_equal(send(c->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Sends @line, perhaps with a descriptor, and gives the answer. */
static struct json_object *ask_fd(struct ctl_client *c, const char *line, int fd)
{
	struct json_object *request = json_tokener_parse(line);
	struct json_object *answer;

	assert_non_null(request);
	assert_true(ctl_client_send(c, request, fd));
	json_object_put(request);
	answer = ctl_client_receive(c);
	assert_non_null(answer);
	return answer;
}

static struct json_object *ask(struct ctl_client *c, const char *line)
{
	return ask_fd(c, line, -1);
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(o, key, &v))
		print_message("no %s in %s\n", key, json_object_to_json_string(o));
	assert_non_null(v);
	return v;
}

static int number(struct json_object *o, const char *key)
{
	return json_object_get_int(member(o, key));
}

static const char *text(struct json_object *o, const char *key)
{
	return json_object_get_string(member(o, key));
}

static void assert_ok(struct json_object *answer)
{
	assert_true(json_object_get_boolean(member(answer, "ok")));
	json_object_put(answer);
}

static void assert_refused(struct json_object *answer, const char *says)
{
	assert_false(json_object_get_boolean(member(answer, "ok")));
	if (!strstr(text(answer, "error"), says))
		print_message("'%s' does not say '%s'\n", text(answer, "error"), says);
	assert_non_null(strstr(text(answer, "error"), says));
	json_object_put(answer);
}

static void the_socket_is_for_its_owner_only(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_path_in_use_is_refused(void **state)
{
	char file[64];

	(void)state;
	assert_null(ctl_create(path, ctl_devices, 2));
	assert_int_equal(errno, EADDRINUSE);
	snprintf(file, sizeof(file), "%s/file", dir);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	assert_null(ctl_create(file, ctl_devices, 2));
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(access(file, F_OK), 0);
	unlink(file);
	assert_null(ctl_create("", ctl_devices, 2));
	assert_null(ctl_create("/nowhere/control", ctl_devices, 2));
	assert_int_equal(errno, ENOENT);
}

static void a_socket_left_by_a_crash_is_replaced(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ctl *second;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/stale", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	second = ctl_create(addr.sun_path, ctl_devices, 2);
	assert_non_null(second);
	ctl_destroy(second);
	assert_int_equal(access(addr.sun_path, F_OK), -1);
}

static void devices_are_told_with_their_facts(void **state)
{
	struct ctl_client c = connected();
	struct json_object *answer = ask(&c, "{\"cmd\":\"devices\"}"), *list, *d;

	(void)state;
	list = member(answer, "devices");
	assert_int_equal(json_object_array_length(list), 2);
	d = json_object_array_get_idx(list, 1);
	assert_string_equal(text(d, "name"), "skua1");
	assert_string_equal(text(d, "mac"), "52:54:00:00:00:02");
	assert_string_equal(text(d, "link"), "wire:a");
	assert_string_equal(text(d, "state"), "enabled");
	assert_string_equal(text(d, "health"), "ok");
	assert_true(json_object_get_boolean(member(d, "link_up")));
	assert_false(json_object_get_boolean(member(d, "capture")));
	assert_int_equal(number(d, "mtu"), 1500);
	assert_int_equal(number(d, "qps"), 1);
	assert_int_equal(number(d, "mrs"), 7);
	assert_ok(answer);
	ctl_client_close(&c);
}

static void qps_are_told_of_one_device_or_of_all(void **state)
{
	struct ctl_client c = connected();
	struct json_object *answer, *qp;

	(void)state;
	answer = ask(&c, "{\"cmd\":\"qps\"}");
	assert_int_equal(json_object_array_length(member(answer, "qps")), 3);
	assert_ok(answer);
	answer = ask(&c, "{\"cmd\":\"qps\",\"device\":\"skua1\"}");
	assert_int_equal(json_object_array_length(member(answer, "qps")), 1);
	qp = json_object_array_get_idx(member(answer, "qps"), 0);
	assert_string_equal(text(qp, "device"), "skua1");
	assert_int_equal(number(qp, "qpn"), 0x2000);
	assert_string_equal(text(qp, "type"), "RC");
	assert_string_equal(text(qp, "state"), "RTS");
	assert_int_equal(number(qp, "una_psn"), 9);
	assert_ok(answer);
	ctl_client_close(&c);
}

static void an_answer_may_be_large(void **state)
{
	struct ctl_client c = connected();
	struct json_object *answer;

	(void)state;
	devs[0].nqps = 20000;
	answer = ask(&c, "{\"cmd\":\"qps\",\"device\":\"skua0\"}");
	devs[0].nqps = 2;
	assert_int_equal(json_object_array_length(member(answer, "qps")), 20000);
	assert_ok(answer);
	ctl_client_close(&c);
}

/* Guests decide how many there are, and objects take much more room than their text. */
static void a_long_list_is_not_made_of_objects_at_once(void **state)
{
	struct ctl_client c = connected();
	struct json_object *answer, *list;

	(void)state;
	devs[0].nqps = 4096;
	client_thread = pthread_self();
	most_objects = 0;
	answer = ask(&c, "{\"cmd\":\"qps\"}");
	assert_in_range(most_objects, 1, 10);
	list = member(answer, "qps");
	assert_int_equal(json_object_array_length(list), 4097);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(number(json_object_array_get_idx(list, i), "qpn"), 0x1000 + i);
	assert_string_equal(text(json_object_array_get_idx(list, 4096), "device"), "skua1");
	json_object_put(answer);
	devs[0].nqps = 0;
	answer = ask(&c, "{\"cmd\":\"qps\",\"device\":\"skua0\"}");
	assert_int_equal(json_object_array_length(member(answer, "qps")), 0);
	json_object_put(answer);
	devs[0].nqps = 2;
	ctl_client_close(&c);
}

static void counters_have_the_names_of_the_manual(void **state)
{
	struct ctl_client c = connected();
	struct json_object *answer, *all;

	(void)state;
	answer = ask(&c, "{\"cmd\":\"counters\"}");
	all = member(answer, "counters");
	assert_int_equal(number(member(all, "skua0"), "tx_frames"), 100);
	assert_int_equal(number(member(all, "skua1"), "tx_bytes"), 201);
	assert_ok(answer);
	answer = ask(&c, "{\"cmd\":\"counters\",\"device\":\"skua1\"}");
	assert_int_equal(json_object_object_length(member(answer, "counters")), 1);
	assert_ok(answer);
	ctl_client_close(&c);
}

static void impairments_are_set_shown_and_ended(void **state)
{
	struct ctl_client c = connected();
	struct json_object *answer, *rules;

	(void)state;
	assert_ok(ask(&c, "{\"cmd\":\"impair\",\"device\":\"skua0\",\"rules\":[\"drop=1%\",\"seed=3\",\"delay=1ms\"]}"));
	assert_int_equal(double_impair.seed, 3);
	answer = ask(&c, "{\"cmd\":\"impair\",\"device\":\"skua0\"}");
	rules = member(answer, "rules");
	assert_int_equal(json_object_array_length(rules), 2);
	assert_string_equal(text(json_object_array_get_idx(rules, 1), "rule"), "delay=1ms");
	assert_ok(answer);
	assert_ok(ask(&c, "{\"cmd\":\"impair\",\"device\":\"skua0\",\"rules\":[]}"));
	assert_int_equal(double_impair.n, 0);
	ctl_client_close(&c);
}

static void the_link_goes_down_and_up(void **state)
{
	struct ctl_client c = connected();

	(void)state;
	assert_ok(ask(&c, "{\"cmd\":\"link\",\"device\":\"skua1\",\"up\":false}"));
	assert_false(devs[1].link_up);
	assert_true(devs[0].link_up);
	assert_ok(ask(&c, "{\"cmd\":\"link\",\"device\":\"skua1\",\"up\":true}"));
	assert_true(devs[1].link_up);
	ctl_client_close(&c);
}

#define INJECT	"{\"cmd\":\"inject\",\"device\":\"skua0\""

static void a_fault_that_cannot_be_is_refused(void **state)
{
	struct ctl_client c = connected();

	(void)state;
	injected.result = -ENOENT;
	assert_refused(ask(&c, INJECT ",\"fault\":\"qp-fatal\",\"number\":9}"), "skua0 has no QP 9");
	injected.result = -ENXIO;
	assert_refused(ask(&c, INJECT ",\"fault\":\"eq-overflow\"}"), "a driver has enabled");
	injected.result = 0;
	assert_ok(ask(&c, INJECT ",\"fault\":\"eq-overflow\"}"));
	ctl_client_close(&c);
}

static void an_answer_has_the_id_of_its_request(void **state)
{
	struct ctl_client c = connected();
	struct json_object *answer = ask(&c, "{\"cmd\":\"devices\",\"id\":\"x y\"}");

	(void)state;
	assert_string_equal(text(answer, "id"), "x y");
	assert_ok(answer);
	answer = ask(&c, "{\"cmd\":\"explode\",\"id\":12}");
	assert_int_equal(number(answer, "id"), 12);
	assert_refused(answer, "no such command");
	ctl_client_close(&c);
}

static void bad_requests_are_refused_clearly(void **state)
{
	static const struct {
		const char *line, *says;
	} bad[] = {
		{ "\n", "bad JSON" },
		{ "nonsense\n", "bad JSON" },
		{ "{\"cmd\":\n", "not a whole value" },
		{ "{\"cmd\":\"devices\"} {}\n", "bad JSON" },
		{ "{\"cmd\":\"devices\",}\n", "bad JSON" },
		{ "{\"cmd\":{\"a\":{\"b\":{\"c\":{}}}}}\n", "bad JSON" },
		{ "{\"cmd\":\"\xff\"}\n", "bad JSON" },
		{ "[]\n", "a JSON object" },
		{ "null\n", "bad JSON" },
		{ "{}\n", "needs a string 'cmd'" },
		{ "{\"cmd\":7}\n", "needs a string 'cmd'" },
		{ "{\"cmd\":\"explode\"}\n", "no such command: 'explode'" },
		{ "{\"cmd\":\"devices\",\"device\":\"skua0\"}\n", "unknown member 'device'" },
		{ "{\"cmd\":\"qps\",\"devcie\":\"skua0\"}\n", "unknown member 'devcie'" },
		{ "{\"cmd\":\"qps\",\"device\":0}\n", "must be a string" },
		{ "{\"cmd\":\"qps\",\"device\":\"skua7\"}\n", "no such device: 'skua7'" },
		{ "{\"cmd\":\"link\",\"up\":true}\n", "'device' is missing" },
		{ "{\"cmd\":\"link\",\"device\":\"skua0\"}\n", "must be true or false" },
		{ "{\"cmd\":\"impair\",\"device\":\"skua0\",\"rules\":1}\n", "must be an array" },
		{ "{\"cmd\":\"impair\",\"device\":\"skua0\",\"rules\":[1]}\n", "must be an array" },
		{ "{\"cmd\":\"impair\",\"device\":\"skua0\",\"rules\":[\"seed=5\"]}\n", "a seed needs a rule" },
		{ "{\"cmd\":\"impair\",\"device\":\"skua0\",\"rules\":[\"seed=5\",\"drop=1%\",\"seed=6\"]}\n",
		  "impair: a seed is given twice: 'seed=6'" },
		{ "{\"cmd\":\"impair\",\"device\":\"skua0\",\"rules\":[\"drop=1%,dir=in,dir=out\"]}\n",
		  "impair: a key is given twice: 'drop=1%,dir=in,dir=out'" },
		{ "{\"cmd\":\"impair\",\"device\":\"skua0\",\"rules\":[\"ecn=1%,over=1ms,dir=in\",\"rate=1G,dir=out\"]}\n",
		  "impair: over needs a rate rule of its direction: 'ecn=1%,over=1ms,dir=in'" },
		{ "{\"cmd\":\"impair\",\"device\":\"skua0\",\"rules\":[\"drop=2\"]}\n",
		  "bad rule: 'drop=2'" },
		{ "{\"cmd\":\"link\",\"device\":\"skua0\",\"up\":1}\n", "must be true or false" },
		{ INJECT "}\n", "'fault' must be one of none, " },
		{ INJECT ",\"fault\":7}\n", "'fault' must be one of none, " },
		{ INJECT ",\"fault\":\"rust\"}\n", "no such fault: 'rust'; the faults are none, " },
		{ INJECT ",\"fault\":\"gone\",\"number\":1}\n", "gone takes no number" },
		{ INJECT ",\"fault\":\"cq-error\"}\n", "cq-error needs the number of a CQ" },
		{ INJECT ",\"fault\":\"cq-error\",\"number\":-1}\n", "0 to 2^32 - 1" },
		{ INJECT ",\"fault\":\"cq-error\",\"number\":4294967296}\n", "0 to 2^32 - 1" },
		{ INJECT ",\"fault\":\"cq-error\",\"number\":\"1\"}\n", "0 to 2^32 - 1" },
		{ "{\"cmd\":\"capture\",\"device\":\"skua0\"}\n", "no descriptor" },
		{ "{\"cmd\":\"capture-stop\",\"device\":\"skua0\"}\n", "not being captured" },
	};
	struct ctl_client c = connected();

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct json_object *answer;

		send_text(&c, bad[i].line);
		answer = ctl_client_receive(&c);
		assert_non_null(answer);
		assert_refused(answer, bad[i].says);
	}
	assert_ok(ask(&c, "{\"cmd\":\"devices\"}"));	/* it goes on */
	ctl_client_close(&c);
}

/* An answer that has room for a part of a request's text shows whole characters. */
static void long_texts_are_cut_between_characters(void **state)
{
	static const struct {
		const char *json, *utf8;
	} characters[] = { { "\\u00e9", "\u00e9" }, { "\\u20ac", "\u20ac" }, { "\\ud83d\\udc26", "\U0001f426" } };
	struct ctl_client c = connected();

	(void)state;
	for (size_t i = 0; i < 4 * sizeof(characters) / sizeof(characters[0]); i++) {
		const char *json = characters[i / 4].json, *utf8 = characters[i / 4].utf8;
		char line[600] = "{\"cmd\":\"", says[100] = "no such command: '";

		strcat(line, &"abc"[3 - i % 4]);
		strcat(says, &"abc"[3 - i % 4]);
		for (int j = 0; j < 30; j++)
			strcat(line, json);
		for (size_t left = 40 - i % 4; left >= strlen(utf8); left -= strlen(utf8))
			strcat(says, utf8);
		send_text(&c, strcat(line, "\"}\n"));
		assert_refused(ctl_client_receive(&c), strcat(says, "'"));
	}
	ctl_client_close(&c);
}

static void requests_may_come_in_pieces_or_together(void **state)
{
	struct ctl_client c = connected();

	(void)state;
	send_text(&c, "{\"cmd\":\"dev");
	usleep(20000);
	send_text(&c, "ices\"}\r\n{\"cmd\":\"nothing\"}\n{\"cmd\":\"counters\"}\n");
	assert_ok(ctl_client_receive(&c));
	assert_refused(ctl_client_receive(&c), "no such command");
	assert_ok(ctl_client_receive(&c));
	ctl_client_close(&c);
}

static void a_request_without_end_ends_the_connection(void **state)
{
	struct ctl_client c = connected();
	char *junk = test_malloc(CTL_MAX_LINE + 1);

	(void)state;
	memset(junk, ' ', CTL_MAX_LINE);
	junk[CTL_MAX_LINE] = '\0';
	send_text(&c, junk);
	test_free(junk);
	assert_refused(ctl_client_receive(&c), "too long");
	assert_null(ctl_client_receive(&c));
	ctl_client_close(&c);
}

/* It asks and asks and never listens, until at last it does. */
static void a_client_that_does_not_read_holds_up_nobody(void **state)
{
	struct ctl_client rude = connected(), c;
	int asked = 0;

	(void)state;
	fcntl(rude.fd, F_SETFL, O_NONBLOCK);
	while (asked < 5000 && send(rude.fd, "{\"cmd\":\"counters\"}\n", 19, MSG_NOSIGNAL) == 19)
		asked++;
	assert_true(asked > 100);
	c = connected();
	assert_ok(ask(&c, "{\"cmd\":\"devices\"}"));
	ctl_client_close(&c);
	fcntl(rude.fd, F_SETFL, 0);
	for (int i = 0; i < asked; i++)
		assert_ok(ctl_client_receive(&rude));
	ctl_client_close(&rude);
}

static void clients_have_a_limit(void **state)
{
	struct ctl_client c[33];

	(void)state;
	for (int i = 0; i < 32; i++) {
		c[i] = connected();
		assert_ok(ask(&c[i], "{\"cmd\":\"devices\"}"));
	}
	c[32] = connected();
	assert_refused(ctl_client_receive(&c[32]), "too many clients");
	for (int i = 0; i < 33; i++)
		ctl_client_close(&c[i]);
	/* Room again, as soon as they are seen to be gone. */
	for (int tries = 0;; tries++) {
		struct json_object *answer;
		bool ok;

		c[0] = connected();
		send(c[0].fd, "{\"cmd\":\"devices\"}\n", 18, MSG_NOSIGNAL);
		answer = ctl_client_receive(&c[0]);
		ok = answer && json_object_get_boolean(member(answer, "ok"));
		json_object_put(answer);
		ctl_client_close(&c[0]);
		if (ok)
			break;
		assert_true(tries < 100);
		usleep(10000);
	}
}

#define START	"{\"cmd\":\"capture\",\"device\":\"skua0\"}"
#define STOP	"{\"cmd\":\"capture-stop\",\"device\":\"skua0\"}"

/* A capture of skua0 into a pipe, whose reading end is the caller's. */
static int start_capture(struct ctl_client *c)
{
	int pipefd[2];

	assert_int_equal(pipe(pipefd), 0);
	assert_ok(ask_fd(c, START, pipefd[1]));
	close(pipefd[1]);
	assert_non_null(devs[0].capture);
	return pipefd[0];
}

/* Bytes to the end of the pipe, which comes only if nobody has it open any more. */
static size_t drain(int fd)
{
	char buf[4096];
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		len += n;
	close(fd);
	return len;
}

static void a_capture_runs_until_it_is_stopped(void **state)
{
	struct ctl_client c = connected(), other = connected();
	int fd = start_capture(&c);
	struct json_object *answer;

	(void)state;
	assert_null(devs[1].capture);
	answer = ask(&other, "{\"cmd\":\"devices\"}");
	assert_true(json_object_get_boolean(member(
		json_object_array_get_idx(member(answer, "devices"), 0), "capture")));
	assert_ok(answer);
	assert_refused(ask(&other, STOP), "not being captured by this client");
	assert_refused(ask_fd(&other, START, fd), "captured already");

	answer = ask(&c, STOP);
	assert_int_equal(number(answer, "written"), 0);
	assert_int_equal(number(answer, "lost"), 0);
	assert_ok(answer);
	assert_null(devs[0].capture);
	assert_true(drain(fd) > 100);
	close(start_capture(&c));
	ctl_client_close(&other);
	ctl_client_close(&c);
	assert_true(capture_becomes(&devs[0], false));
}

static void a_capture_ends_with_its_client(void **state)
{
	struct ctl_client c = connected();
	int fd = start_capture(&c);

	(void)state;
	ctl_client_close(&c);
	assert_true(drain(fd) > 100);
	assert_null(devs[0].capture);
}

static void a_capture_whose_reader_is_gone_ends_with_news(void **state)
{
	struct ctl_client c = connected();
	struct json_object *news;
	int fd;

	(void)state;
	close(start_capture(&c));
	news = ctl_client_receive(&c);
	assert_non_null(news);
	assert_string_equal(text(news, "event"), "capture-ended");
	assert_string_equal(text(news, "device"), "skua0");
	assert_string_equal(text(news, "error"), "Broken pipe");
	json_object_put(news);
	assert_null(devs[0].capture);
	fd = start_capture(&c);		/* there may be a next one */
	ctl_client_close(&c);
	assert_true(drain(fd) > 100);
}

static void a_descriptor_that_is_not_wanted_is_closed(void **state)
{
	struct ctl_client c = connected();
	int pipefd[2];

	(void)state;
	assert_int_equal(pipe(pipefd), 0);
	assert_ok(ask_fd(&c, "{\"cmd\":\"devices\"}", pipefd[1]));
	close(pipefd[1]);
	assert_int_equal(drain(pipefd[0]), 0);
	ctl_client_close(&c);
}

static void the_end_of_the_server_ends_captures(void **state)
{
	struct ctl_client c;
	int fd;

	start_server(state);
	c = connected();
	fd = start_capture(&c);
	stop_server(state);
	assert_null(devs[0].capture);
	assert_true(drain(fd) > 100);
	assert_null(ctl_client_receive(&c));
	ctl_client_close(&c);
}

#define served(test)	cmocka_unit_test_setup_teardown(test, start_server, stop_server)

int main(void)
{
	const struct CMUnitTest tests[] = {
		served(the_socket_is_for_its_owner_only),
		served(a_path_in_use_is_refused),
		served(a_socket_left_by_a_crash_is_replaced),
		served(devices_are_told_with_their_facts),
		served(qps_are_told_of_one_device_or_of_all),
		served(an_answer_may_be_large),
		served(a_long_list_is_not_made_of_objects_at_once),
		served(counters_have_the_names_of_the_manual),
		served(the_link_goes_down_and_up),
		served(impairments_are_set_shown_and_ended),
		served(a_fault_that_cannot_be_is_refused),
		served(an_answer_has_the_id_of_its_request),
		served(bad_requests_are_refused_clearly),
		served(long_texts_are_cut_between_characters),
		served(requests_may_come_in_pieces_or_together),
		served(a_request_without_end_ends_the_connection),
		served(a_client_that_does_not_read_holds_up_nobody),
		served(clients_have_a_limit),
		served(a_capture_runs_until_it_is_stopped),
		served(a_capture_ends_with_its_client),
		served(a_capture_whose_reader_is_gone_ends_with_news),
		served(a_descriptor_that_is_not_wanted_is_closed),
		cmocka_unit_test(the_end_of_the_server_ends_captures),
	};

	log_set_level(LOG_LEVEL_ERR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
