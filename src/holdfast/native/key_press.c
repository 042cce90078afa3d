/* key_press: the way of a key press through the daemon, for `holdfast.adapters.session_memory.key_press`.
 *
 * A shared object with two calls. press() receives from an operator's socket; if what comes is one
 * quiet Input, just the next of the operator the caller has judged already, it is gathered for the
 * journal (as adapters.burst does), put into custody and typed (as adapters.ledger does), and its
 * echo looked for. Anything else is handed back untouched, for the ordinary way. echo() looks for
 * output for a short while, again and again. What comes is moved as Ring.pump() moves it (PTY ->
 * conduit -> ring, then the header's word), and, when the caller names a reader, sent to it at once
 * as the frame whose head the caller has made.
 *
 * Who may write, who reads and what else there is to do is decided by the caller, before or
 * afterwards: between the key and its echo there is nothing but this.
 *
 * Killed between any two of its steps it leaves what the Python it stands for leaves. The tests kill
 * it at each POINT. The structs are mirrored in adapters/session_memory/key_press.py; struct_sizes() guards against a
 * difference. The words of ledger and burst are theirs; a test compares what both ways leave there.
 *
 * Deliberately absent: secrets, inputs longer than a key, a second frame in one piece, rolling over
 * the end of the ring in one frame, a second try at sending.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <asm/termbits.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	HEAD_BYTES = 64,
	PAUSE_NS = 4000, /* between two looks: each takes the locks that the echoing program needs */
};

/* u64 words of adapters.ledger, from LEDGER_AT. */
enum { STAGING, BEFORE, LENGTH, SEQ, WHO, CLOCK = 6, ROW_SEQ = 2, ROW_USED = 3 };
/* u64 words of adapters.burst, from BURST_AT; then its head and its data. */
enum { COMMITTED, COMMITTED_SEQ, PREPARED, PREPARED_SEQ, FIRST_SEQ };
enum { BURST_HEAD_AT = 40, BURST_DATA_AT = 128, BURST_ROOM = PAGE - BURST_DATA_AT };

#ifndef POINT
#define POINT(name)
#endif

struct echo {
	/* given by the caller */
	int32_t master, conduit, memfd, reader; /* reader -1: nobody */
	uint64_t map, head_at, data_at, capacity, look_ns;
	uint8_t frame_head[HEAD_BYTES];
	uint32_t frame_head_size;
	/* brought up to date, or given back */
	int32_t error; /* errno, 0 for none; EIO also when nobody has the terminal open */
	int32_t moved, sent;
	uint64_t head;
};

struct press {
	/* given by the caller */
	int32_t sock, typing; /* the operator's socket, the conduit of inputs */
	uint64_t buffer, buffer_size;
	uint64_t ledger, row; /* addresses; the row is the operator's own */
	uint64_t burst;       /* address; 0: nothing is recorded */
	uint64_t who[2], size_max;
	uint8_t session[40], burst_operator[16], burst_actor[32];
	uint32_t session_size, begins; /* begins: there is no burst yet, and room to record one */
	uint64_t next_seq, burst_size;
	double at;
	/* given back */
	int64_t received; /* as recv(), or -errno */
	int64_t request;  /* -1: not typed; what was received is the caller's to deal with */
	int32_t size, untyped;
	uint8_t data[16];
};

void struct_sizes(uint64_t sizes[2])
{
	sizes[0] = sizeof(struct echo);
	sizes[1] = sizeof(struct press);
}

/* -- the echo -------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static ssize_t moved_by_splice(int from, int to, size_t size)
{
	ssize_t count;
	do
		count = splice(from, NULL, to, NULL, size, 0);
	while (count < 0 && errno == EINTR);
	return count;
}

/* Output in the conduit, or 0 when none came in time or there is an error. */
static size_t look(struct echo *e)
{
	uint64_t until = now_ns() + e->look_ns, again;
	do {
		ssize_t count = moved_by_splice(e->master, e->conduit, PAGE);
		if (count > 0)
			return (size_t)count;
		if (count == 0 || errno != EAGAIN) {
			e->error = count == 0 ? EIO : errno;
			return 0;
		}
		for (again = now_ns() + PAUSE_NS; now_ns() < again;)
			;
	} while (again < until);
	return 0;
}

static int drain(struct echo *e, size_t waiting)
{
	while (waiting > 0) {
		uint64_t at = e->head % e->capacity, room = e->capacity - at;
		if (at == 0 && lseek(e->memfd, (off_t)e->data_at, SEEK_SET) < 0)
			break;
		ssize_t count =
			moved_by_splice(e->conduit, e->memfd, waiting < room ? waiting : room);
		if (count <= 0)
			break;
		POINT("stored");
		e->head += (uint64_t)count;
		*(volatile uint64_t *)(e->map + e->head_at) = e->head;
		e->moved += (int32_t)count;
		waiting -= (size_t)count;
	}
	if (waiting > 0)
		e->error = errno ? errno : EIO;
	return waiting == 0;
}

static void put_big_endian(uint8_t *to, uint32_t value)
{
	for (int at = 3; at >= 0; at--, value >>= 8)
		to[at] = (uint8_t)value;
}

static void send_output(struct echo *e, uint64_t start)
{
	uint32_t size = (uint32_t)e->moved;
	uint8_t *data = (uint8_t *)(e->map + e->data_at + start % e->capacity);
	if (start % e->capacity + size > e->capacity)
		return; /* in two pieces: the caller sends it */
	put_big_endian(e->frame_head, e->frame_head_size - 4 + size);
	put_big_endian(e->frame_head + e->frame_head_size - 4, size);
	struct iovec parts[2] = {{e->frame_head, e->frame_head_size}, {data, size}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	ssize_t sent = sendmsg(e->reader, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	e->sent = sent < 0 ? 0 : (int32_t)sent; /* what it did not take is sent by the caller, or fails */
}

void echo(struct echo *e)
{
	uint64_t start = e->head;
	e->error = e->moved = e->sent = 0;
	size_t waiting = look(e);
	POINT("looked");
	if (waiting > 0 && drain(e, waiting) && e->reader >= 0)
		send_output(e, start);
	POINT("sent");
}

/* -- the frame: a map of six fields, in any order, each in the shortest form or another ------------ */

struct input {
	const uint8_t *session, *data;
	uint64_t session_size, data_size, seq, id;
	unsigned seen; /* a bit per field */
};

enum { SEEN_TAG = 1, SEEN_ID = 2, SEEN_SESSION = 4, SEEN_SEQ = 8, SEEN_DATA = 16, SEEN_QUIET = 32 };

struct reader {
	const uint8_t *at, *end;
};

static int big_endian(struct reader *r, unsigned bytes, uint64_t *value)
{
	if ((size_t)(r->end - r->at) < bytes)
		return 0;
	for (*value = 0; bytes > 0; bytes--)
		*value = *value << 8 | *r->at++;
	return 1;
}

static int head(struct reader *r, uint8_t *kind)
{
	if (r->at == r->end)
		return 0;
	*kind = *r->at++;
	return 1;
}

static int unsigned_number(struct reader *r, uint64_t *value)
{
	uint8_t kind;
	if (!head(r, &kind))
		return 0;
	*value = kind;
	if (kind < 0x80)
		return 1;
	return kind >= 0xcc && kind <= 0xcf && big_endian(r, 1u << (kind - 0xcc), value);
}

/* A byte string (its kinds begin at 0xc4) or text (0xd9, and the short form). */
static int bytes(struct reader *r, uint8_t first, const uint8_t **start, uint64_t *size)
{
	uint8_t kind;
	if (!head(r, &kind))
		return 0;
	if (first == 0xd9 && (kind & 0xe0) == 0xa0)
		*size = kind & 0x1f;
	else if (kind < first || kind > first + 2 || !big_endian(r, 1u << (kind - first), size))
		return 0;
	*start = r->at;
	if (*size > (uint64_t)(r->end - r->at))
		return 0;
	r->at += *size;
	return 1;
}

static int is(const uint8_t *text, uint64_t size, const char *word)
{
	return size == strlen(word) && memcmp(text, word, size) == 0;
}

static int field(struct reader *r, struct input *in)
{
	const uint8_t *name, *tag;
	uint64_t size, tag_size;
	uint8_t kind;
	unsigned bit;
	int good;
	if (!bytes(r, 0xd9, &name, &size))
		return 0;
	if (is(name, size, "t")) {
		bit = SEEN_TAG;
		good = bytes(r, 0xd9, &tag, &tag_size) && is(tag, tag_size, "input");
	} else if (is(name, size, "id")) {
		bit = SEEN_ID;
		good = unsigned_number(r, &in->id) && in->id <= INT64_MAX;
	} else if (is(name, size, "session")) {
		bit = SEEN_SESSION;
		good = bytes(r, 0xd9, &in->session, &in->session_size);
	} else if (is(name, size, "seq")) {
		bit = SEEN_SEQ;
		good = unsigned_number(r, &in->seq);
	} else if (is(name, size, "data")) {
		bit = SEEN_DATA;
		good = bytes(r, 0xc4, &in->data, &in->data_size);
	} else if (is(name, size, "quiet")) {
		bit = SEEN_QUIET;
		good = head(r, &kind) && kind == 0xc3;
	} else {
		return 0;
	}
	good = good && !(in->seen & bit);
	in->seen |= bit;
	return good;
}

static int parse(const uint8_t *frame, size_t size, struct input *in)
{
	struct reader r = {frame, frame + size};
	uint64_t length;
	uint8_t kind;
	*in = (struct input){0};
	if (!big_endian(&r, 4, &length) || length != size - 4 || !head(&r, &kind) || kind != 0x86)
		return 0;
	for (int fields = 0; fields < 6; fields++)
		if (!field(&r, in))
			return 0;
	return r.at == r.end;
}

/* -- the key ----------------------------------------------------------------------------------- */

/* Asked at every key press: a program that reads lines with echo off reads a secret. */
static int reads_secretly(int master)
{
	struct termios modes;
	if (ioctl(master, TCGETS, &modes) < 0)
		return 0;
	return (modes.c_lflag & (ICANON | ECHO)) == ICANON;
}

static void begin_burst(const struct press *p, uint64_t offset)
{
	volatile uint64_t *words = (volatile uint64_t *)p->burst;
	uint64_t secret = 0;
	uint8_t *burst_head = (uint8_t *)(p->burst + BURST_HEAD_AT);
	words[COMMITTED] = words[PREPARED] = 0;
	words[COMMITTED_SEQ] = words[PREPARED_SEQ] = p->next_seq - 1;
	memcpy(burst_head, &offset, 8);
	memcpy(burst_head + 8, &secret, 8);
	memcpy(burst_head + 16, &p->at, 8);
	memcpy(burst_head + 24, p->burst_operator, 16);
	memcpy(burst_head + 40, p->burst_actor, 32);
	__asm__ __volatile__("" ::: "memory"); /* what it is, before that it is */
	words[FIRST_SEQ] = p->next_seq;
	POINT("begun");
}

static void prepare(const struct press *p, const struct input *in)
{
	volatile uint64_t *words = (volatile uint64_t *)p->burst;
	memcpy((uint8_t *)(p->burst + BURST_DATA_AT + p->burst_size), in->data, in->data_size);
	__asm__ __volatile__("" ::: "memory");
	words[PREPARED] = p->burst_size + in->data_size;
	words[PREPARED_SEQ] = in->seq;
	POINT("prepared");
}

static void commit(const struct press *p, const struct input *in)
{
	volatile uint64_t *words = (volatile uint64_t *)p->burst;
	words[COMMITTED] = p->burst_size + in->data_size;
	words[COMMITTED_SEQ] = in->seq;
	POINT("committed");
}

/* Into custody, whole; the caller has seen that the conduit is empty. */
static int take(const struct press *p, const struct input *in)
{
	volatile uint64_t *words = (volatile uint64_t *)p->ledger;
	volatile uint64_t *row = (volatile uint64_t *)p->row;
	words[BEFORE] = 0;
	words[LENGTH] = in->data_size;
	words[SEQ] = in->seq;
	words[WHO] = p->who[0];
	words[WHO + 1] = p->who[1];
	words[STAGING] = 1;
	POINT("staged");
	ssize_t written;
	do
		written = write(p->typing, in->data, in->data_size);
	while (written < 0 && errno == EINTR);
	if (written != (ssize_t)in->data_size) {
		words[STAGING] = 0; /* a pipe takes so little whole or not at all */
		return 0;
	}
	POINT("written");
	row[ROW_SEQ] = in->seq;
	row[ROW_USED] = ++words[CLOCK];
	POINT("noted");
	words[STAGING] = 0;
	POINT("taken");
	return 1;
}

/* Whether all conditions hold under which the caller wants it taken. */
static int is_the_key(const struct press *p, const struct input *in, int master)
{
	return in->session_size == p->session_size &&
	       memcmp(in->session, p->session, p->session_size) == 0 && in->seq == p->next_seq &&
	       in->data_size > 0 && in->data_size <= p->size_max &&
	       p->burst_size + in->data_size <= BURST_ROOM && !reads_secretly(master);
}

void press(struct press *p, struct echo *e)
{
	struct input in;
	e->error = e->moved = e->sent = 0;
	p->request = -1;
	p->untyped = 0;
	p->received = recv(p->sock, (void *)p->buffer, p->buffer_size, MSG_DONTWAIT);
	if (p->received < 0)
		p->received = -errno;
	if (p->received <= 4 || !parse((const uint8_t *)p->buffer, (size_t)p->received, &in) ||
	    !is_the_key(p, &in, e->master))
		return;
	POINT("received");
	if (p->burst && p->begins)
		begin_burst(p, e->head);
	if (p->burst)
		prepare(p, &in);
	if (!take(p, &in))
		return;
	p->size = p->untyped = (int32_t)in.data_size;
	memcpy(p->data, in.data, in.data_size);
	ssize_t typed = moved_by_splice(p->typing, e->master, in.data_size);
	if (typed > 0)
		p->untyped -= (int32_t)typed; /* hung up, or full: the caller finds out which */
	POINT("typed");
	if (p->burst)
		commit(p, &in);
	p->request = (int64_t)in.id;
	if (e->look_ns > 0 && p->untyped == 0)
		echo(e);
}
