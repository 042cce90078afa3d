/* key_loop: the way of a key press through an attached client, for `holdfast.cli.attach.native_loop`.
 *
 * A shared object. One call of key_loop() serves an attachment for as long as everything is usual:
 * keys from the terminal go to the host as quiet inputs, output from the host goes to the terminal
 * as it is, `accepted` is noted. At anything else it returns, and the client in Python goes on from
 * exactly there: it is the one that knows what things mean. In particular it returns
 *
 *   - before sending keys among which is the prefix,
 *   - before a frame that is not an `output` of our channel at the very next offset, or an
 *     `accepted`, each in the one layout that wire/frames.py makes; also before part of a frame,
 *   - at the end of a file, at an error, when a signal came,
 *   - when so much was typed and not taken that no more may be read, or the notes are full.
 *
 * What must hold when it returns, at whatever point: every input sent, or whose sending failed, is
 * noted with its number, its request and its bytes, unless the host said that it has it. The note
 * is made before the first byte is sent. `offset` counts what the terminal has taken, so output
 * that was shown in part and is handed over is shown from there on.
 *
 * Deliberately absent: memory of its own, timers, reconnecting, any other message. Nor does it look
 * for the echo in a loop before it sleeps, as the client in Python does: that took the processor
 * from the program that echoes, and made the slow tenth of the keys half as slow again.
 * `struct loop` is mirrored in cli/attach/native_loop.py; key_loop_size() guards against a difference.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	READ_BYTES = 96 << 10, /* as in sdk/connection.py */
	KEYS_BYTES = 4096,     /* a terminal gives no more at once */
	NOTES = 64,
	NOTED_BYTES = 16 << 10,
	SESSION_BYTES = 128,
	FRAME_BYTES = KEYS_BYTES + SESSION_BYTES + 128,
};

/* Why it returned. */
enum {
	HANDED_OVER = 0, /* keys, a rest of what was received, or notes are for the caller */
	LOOK = 1,        /* a descriptor has something that is the caller's to see */
};

struct note {
	uint64_t seq, request;
	uint32_t at, size; /* in `noted` */
};

struct loop {
	/* given by the caller */
	int32_t keys_fd, screen_fd, host_fd, wake_fd;
	uint64_t channel, window_bytes;
	uint32_t prefix, session_size;
	uint8_t session[SESSION_BYTES];
	/* given, and brought up to date */
	uint64_t request, seq, taken, untaken_bytes, offset;
	/* handed over: unsent keys (in `noted`, behind the notes' bytes), a rest of `received` */
	uint32_t notes_count, noted_size, keys_size, rest_at, rest_size;
	struct note notes[NOTES];
	uint8_t noted[NOTED_BYTES];
	uint8_t received[READ_BYTES];
};

uint64_t key_loop_size(void)
{
	return sizeof(struct loop);
}

/* -- reading msgpack: each gives 0 when it is not what was expected ------------------------- */

struct reader {
	const uint8_t *at, *end;
};

static int constant(struct reader *r, const char *text, size_t size)
{
	if ((size_t)(r->end - r->at) < size || memcmp(r->at, text, size) != 0)
		return 0;
	r->at += size;
	return 1;
}
#define CONSTANT(r, text) constant(r, text, sizeof(text) - 1)

static int big_endian(struct reader *r, unsigned bytes, uint64_t *value)
{
	if ((size_t)(r->end - r->at) < bytes)
		return 0;
	for (*value = 0; bytes > 0; bytes--)
		*value = *value << 8 | *r->at++;
	return 1;
}

static int number(struct reader *r, uint64_t *value)
{
	uint64_t first;
	if (!big_endian(r, 1, &first))
		return 0;
	if (first < 0x80) {
		*value = first;
		return 1;
	}
	return first >= 0xcc && first <= 0xcf && big_endian(r, 1u << (first - 0xcc), value);
}

/* The rest of the body must be one string of bytes. */
static int bytes_to_the_end(struct reader *r)
{
	uint64_t kind, size;
	return big_endian(r, 1, &kind) && kind >= 0xc4 && kind <= 0xc6 &&
	       big_endian(r, 1u << (kind - 0xc4), &size) && size == (uint64_t)(r->end - r->at);
}

/* -- writing msgpack ------------------------------------------------------------------------ */

static uint8_t *put(uint8_t *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	return to + size;
}
#define PUT(to, text) put(to, text, sizeof(text) - 1)

static uint8_t *put_big_endian(uint8_t *to, unsigned bytes, uint64_t value)
{
	while (bytes > 0)
		*to++ = (uint8_t)(value >> 8 * --bytes);
	return to;
}

static uint8_t *put_number(uint8_t *to, uint64_t value)
{
	if (value < 0x80)
		return put_big_endian(to, 1, value);
	unsigned power = value <= 0xff ? 0 : value <= 0xffff ? 1 : value <= 0xffffffff ? 2 : 3;
	*to++ = (uint8_t)(0xcc + power);
	return put_big_endian(to, 1u << power, value);
}

/* The same bytes as quiet_input() in wire/frames.py. */
static size_t input_frame(const struct loop *l, const struct note *n, uint8_t *frame)
{
	uint8_t *to = PUT(frame + 4, "\x86\xa1t\xa5input\xa2id");
	to = PUT(put_number(to, n->request), "\xa7session");
	if (l->session_size < 32) {
		*to++ = (uint8_t)(0xa0 + l->session_size);
	} else {
		*to++ = 0xd9;
		*to++ = (uint8_t)l->session_size;
	}
	to = PUT(put(to, l->session, l->session_size), "\xa3seq");
	to = PUT(put_number(to, n->seq), "\xa4" "data");
	unsigned power = n->size > 0xff;
	*to++ = (uint8_t)(0xc4 + power);
	to = put_big_endian(to, 1u << power, n->size);
	to = PUT(put(to, l->noted + n->at, n->size), "\xa5quiet\xc3");
	put_big_endian(frame, 4, (uint64_t)(to - frame - 4));
	return (size_t)(to - frame);
}

/* -- from the host -------------------------------------------------------------------------- */

/* All of it, also where somebody else left the descriptor non-blocking. */
static int show(struct loop *l, const uint8_t *data, size_t size)
{
	while (size > 0) {
		ssize_t count = write(l->screen_fd, data, size);
		if (count >= 0) {
			l->offset += (uint64_t)count;
			data += count;
			size -= (size_t)count;
		} else if (errno == EAGAIN) {
			struct pollfd room = {l->screen_fd, POLLOUT, 0};
			poll(&room, 1, -1);
		} else if (errno != EINTR) {
			return 0;
		}
	}
	return 1;
}

static int take_output(struct loop *l, struct reader r)
{
	uint64_t channel, offset;
	if (!CONSTANT(&r, "\x84\xa1t\xa6output\xa7" "channel") || !number(&r, &channel) ||
	    !CONSTANT(&r, "\xa6offset") || !number(&r, &offset) || !CONSTANT(&r, "\xa4" "data") ||
	    !bytes_to_the_end(&r))
		return 0;
	return channel == l->channel && offset == l->offset &&
	       show(l, r.at, (size_t)(r.end - r.at));
}

static int take_accepted(struct loop *l, struct reader r)
{
	uint64_t request, seq, offset;
	if (!CONSTANT(&r, "\x86\xa1t\xa8" "accepted\xa2id") || !number(&r, &request) ||
	    !CONSTANT(&r, "\xa3seq") || !number(&r, &seq) || !CONSTANT(&r, "\xa6offset") ||
	    !number(&r, &offset) || !CONSTANT(&r, "\xa8repeated"))
		return 0;
	if (r.at == r.end || (*r.at != 0xc2 && *r.at != 0xc3))
		return 0;
	r.at++;
	if (!CONSTANT(&r, "\xa4held\xa0") || r.at != r.end) /* what is held, Python tells of */
		return 0;
	if (seq > l->taken)
		l->taken = seq;
	if (l->taken >= l->seq) { /* all of them: nothing is left to remember */
		l->notes_count = l->noted_size = 0;
		l->untaken_bytes = 0;
	}
	return 1;
}

/* Whole frames that are usual; from the first that is not on, the rest. */
static void take_frames(struct loop *l, size_t size)
{
	struct reader all = {l->received, l->received + size};
	while (all.at < all.end) {
		struct reader r = all;
		uint64_t length;
		if (!big_endian(&r, 4, &length) || length > (uint64_t)(r.end - r.at))
			break;
		r.end = r.at + length;
		if (!take_output(l, r) && !take_accepted(l, r))
			break;
		all.at = r.end;
	}
	l->rest_at = (uint32_t)(all.at - l->received);
	l->rest_size = (uint32_t)(all.end - all.at);
}

/* -- from the operator ---------------------------------------------------------------------- */

static int send_all(int fd, const uint8_t *data, size_t size)
{
	while (size > 0) {
		ssize_t count = send(fd, data, size, MSG_NOSIGNAL);
		if (count > 0) {
			data += count;
			size -= (size_t)count;
		} else if (errno != EINTR) {
			return 0;
		}
	}
	return 1;
}

static int send_keys(struct loop *l, uint32_t size)
{
	uint8_t frame[FRAME_BYTES];
	struct note *n = &l->notes[l->notes_count++];
	n->seq = ++l->seq;
	n->request = ++l->request;
	n->at = l->noted_size;
	n->size = size;
	l->noted_size += size;
	l->untaken_bytes += size;
	return send_all(l->host_fd, frame, input_frame(l, n, frame));
}

static int room_for_keys(const struct loop *l)
{
	return l->notes_count < NOTES && l->noted_size + KEYS_BYTES <= NOTED_BYTES &&
	       l->untaken_bytes < l->window_bytes;
}

/* -- the loop ------------------------------------------------------------------------------- */

int key_loop(struct loop *l)
{
	struct pollfd ready[3] = {
		{l->host_fd, POLLIN, 0}, {l->keys_fd, POLLIN, 0}, {l->wake_fd, POLLIN, 0}};
	l->notes_count = l->noted_size = l->keys_size = l->rest_size = 0;
	while (room_for_keys(l)) {
		if (poll(ready, 3, -1) < 0) {
			if (errno != EINTR)
				return LOOK;
			continue;
		}
		if (ready[2].revents)
			return LOOK;
		if (ready[0].revents) {
			ssize_t count = recv(l->host_fd, l->received, READ_BYTES, MSG_DONTWAIT);
			if (count <= 0)
				return LOOK;
			take_frames(l, (size_t)count);
			if (l->rest_size > 0)
				return HANDED_OVER;
		}
		if (ready[1].revents) {
			uint8_t *keys = l->noted + l->noted_size;
			if (!(ready[1].revents & POLLIN))
				return LOOK;
			ssize_t count = read(l->keys_fd, keys, KEYS_BYTES);
			if (count <= 0)
				return LOOK;
			if (memchr(keys, (int)l->prefix, (size_t)count) != NULL) {
				l->keys_size = (uint32_t)count;
				return HANDED_OVER;
			}
			if (!send_keys(l, (uint32_t)count))
				return LOOK;
		}
	}
	return HANDED_OVER;
}
