/* echo: from the PTY to the operator who waits for it, for `holdfast.adapters.echo`.
 *
 * A shared object. One call of echo() looks for output for a short while, again and again. What
 * comes is moved as Ring.pump() moves it (PTY -> conduit -> ring, then the header's word), and, when
 * the caller names a reader, sent to it at once as the frame whose head the caller has made. The
 * caller decides who reads and what else there is to do, and does it before or afterwards: between
 * the echo and its sending there is nothing but this.
 *
 * Killed between any two of its system calls it leaves what Ring leaves: each byte in exactly one
 * of PTY, conduit and ring. `struct echo` is mirrored in adapters/echo.py; echo_size() guards
 * against a difference.
 *
 * Deliberately absent: rolling over the end of the ring in one frame, a second try at sending.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	HEAD_BYTES = 64,
	PAUSE_NS = 4000, /* between two looks: each takes the locks that the echoing program needs */
};

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

uint64_t echo_size(void)
{
	return sizeof(struct echo);
}

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
	if (waiting > 0 && drain(e, waiting) && e->reader >= 0)
		send_output(e, start);
}
