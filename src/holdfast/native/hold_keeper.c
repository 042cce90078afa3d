/* hold-keeper: the custody of one session.
 *
 *   hold-keeper PID CONNECTION LISTENER PATH [GATE PAGE]
 *
 * The parent and subreaper of a session, whose first process is PID. It holds what the session
 * consists of besides its processes: descriptors, each with its name, and a state blob, both opaque.
 * A daemon that dies loses nothing of them: the next one connects to LISTENER, a SEQPACKET socket at
 * PATH, and collects. CONNECTION is that of the daemon which started the session. One daemon is
 * served at a time; the newest wins, after what the older one had sent was carried out.
 *
 * While no daemon is connected it does three things that cannot wait for one: it notes how the
 * session ended, freezes it when the deadline of its lease passes, and moves output from the
 * terminal into the ring, so that no program waits for a daemon.
 *
 * keeper/protocol.py has the other end of the messages, and the same numbers.
 *
 * With an exec gate (GATE, the listener of the session's system call filter) there is a fourth: as long
 * as nothing is to be judged, it lets every call that waits there go on, so that no death of another
 * process holds up an exec. PAGE says whether: adapters/seccomp/gate_page.py has the same numbers. A
 * listener may have one reader only, so once the page says otherwise it stops for good, and says so.
 *
 * Deliberately absent: libc, memory that grows, logging, any signal's effect but SIGKILL's. A message
 * that makes no sense is dropped; a descriptor that fails is left alone for a second.
 */
#include "freestanding.h"

typedef unsigned char byte;
typedef unsigned int u32;
typedef unsigned long u64;

enum {
	MESSAGE_MAX = 160 << 10,	/* as keeper/protocol.py has it */
	DESCRIPTORS_MAX = 16,
	NAMES_MAX = 256,
	PAGE = 4096,
	BURST_READS = 15,	/* a terminal gives a page at a time, and a pipe has 16 slots */
	HEARD_FIRST = 4096,	/* messages read before a deadline is acted on */
	TRACED_AGAIN_NS = 5000000,	/* between looks whether CRIU has let go of the session */
	LOOK_AGAIN_MS = 1000,	/* at a terminal that nobody has open, or that failed */
	PASSED_FIRST = 64,	/* calls of the gate, before anything else is looked at */
	NONE = 255,
};

/* From a daemon, and to it. */
enum { DEPOSIT = 'd', UPDATE = 'u', COLLECT = 'c', LEASE = 'l', OUTPUT = 'o', GATE = 'g',
       DUMP = 'k', RELEASE = 'r' };
enum { DEPOSITED = 'D', EMPTY = 'N', ENDED = 'E', FROZE = 'F', LEFT_GATE = 'G' };
/* What becomes of output while no daemon is connected. */
enum { KEEP = 0, DROP = 1, LEAVE = 2 };
enum { BY_EXIT = 0, BY_SIGNAL = 1 };

enum {
	SOL_SOCKET_ = 1,
	SO_PEERCRED_ = 17,
	SCM_RIGHTS_ = 1,
	MSG_CTRUNC_ = 8,
	MSG_TRUNC_ = 0x20,
	MSG_DONTWAIT_ = 0x40,
	MSG_NOSIGNAL_ = 0x4000,
	MSG_CLOEXEC_ = 0x40000000,
	NONBLOCK_CLOEXEC_ = 02004000,
	CLOCK_BOOTTIME_ = 7,
	TIMER_ABSTIME_ = 1,
	POLLIN_ = 1,
	POLLOUT_ = 4,
	P_ALL_ = 0,
	WEXITED_ = 4,
	WNOWAIT_ = 0x01000000,
	SEEK_SET_ = 0,
	SEEK_CUR_ = 1,
	FIONREAD_ = 0x541B,
	MADV_DONTNEED_ = 4,
	SPLICE_NONBLOCK_ = 2,
	EAGAIN_ = 11,
	O_WRONLY_ = 1,
	POLLHUP_ = 0x10,
	GATE_WORD_AT = 0,	/* in the page: zero while nothing is judged */
	GATE_LEFT_AT = 8,	/* not zero: we have stopped, for good */
	GATE_CALLS_AT = 64,	/* calls that were taken and not answered */
	GATE_GO_ON_ = 1,	/* SECCOMP_USER_NOTIF_FLAG_CONTINUE */
};

#define GATE_RECEIVE 0xC0502100UL	/* SECCOMP_IOCTL_NOTIF_RECV */
#define GATE_SEND 0xC0182101UL		/* SECCOMP_IOCTL_NOTIF_SEND */

struct slice { void *at; u64 length; };
struct message {
	void *name; u32 name_length; struct slice *slices; u64 slice_count;
	void *control; u64 control_length; int flags;
};
struct control { u64 length; int level, type; int fds[DESCRIPTORS_MAX]; };
struct poll { int fd; short events, revents; };

struct deposit_head {
	byte kind, output, master, ring, conduit, unused[3];
	u32 names_length, unused_too;
	u64 data_at, capacity, head_at;	/* of the ring: bytes into its memory */
};
struct gate_call { u64 id; u32 pid, flags; u64 data[8]; };
struct gate_answer { u64 id; long value; int error; u32 flags; };
struct update_head { byte kind, unused[7]; };
struct lease_head { byte kind, unused[7]; u64 deadline_ns; };
struct news {
	byte kind, has_status, by, unused;
	int status, session_pid, keeper_pid;
	u32 names_length, unused_too;
};

static struct {
	int session, connection, listener, signals, timer, freezer, gate, gate_page;
	const char *path;
	byte has_status, by, deposited, served, told_end, tell_froze, tell_gate, resting, dumping;
	int status;
	int fds[DESCRIPTORS_MAX], fd_count;
	struct deposit_head deposit;
	byte names[NAMES_MAX];
	byte *blob;
	u64 blob_length, deadline_ns;
	int uid, spare;
	byte touched[2];
} keeper;	/* all that changes besides the buffers: in one page */

/* One receives while the other holds the blob. Pages are taken only as used. */
static byte buffers[2][MESSAGE_MAX] __attribute__((aligned(PAGE)));

/* The compiler may call these two for what is written otherwise, but not within themselves. */
#if defined(__clang__)
#define LOOP __attribute__((used))
#else
#define LOOP __attribute__((used, optimize("no-tree-loop-distribute-patterns")))
#endif

LOOP void *memset(void *at, int value, u64 count)
{
	for (byte *to = at; count--; )
		*to++ = (byte)value;
	return at;
}

LOOP void *memcpy(void *at, const void *from, u64 count)
{
	byte *to = at;
	for (const byte *source = from; count--; )
		*to++ = *source++;
	return at;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		sys(NR_close, fd, 0, 0, 0);
}

static void finish(void)
{
	/* The listener is still ours: nobody can have bound another one to this path. */
	sys(NR_unlinkat, AT_FDCWD_, keeper.path, 0, 0);
	kill_children();
	leave(0);
}

/* -- news ------------------------------------------------------------------------------------- */

static word send(struct message *message)
{
	return sys(NR_sendmsg, keeper.connection, message, MSG_DONTWAIT_ | MSG_NOSIGNAL_, 0);
}

static void describe(struct news *news, byte kind)
{
	*news = (struct news){ .kind = kind };
	news->has_status = keeper.has_status;
	news->by = keeper.by;
	news->status = keeper.status;
	news->session_pid = keeper.session;
	news->keeper_pid = (int)sys(NR_getpid, 0, 0, 0, 0);
}

static int tell(byte kind)
{
	struct news news;
	struct slice slice = { &news, sizeof news };
	struct message message = { .slices = &slice, .slice_count = 1 };
	describe(&news, kind);
	return send(&message) != -EAGAIN_;	/* a connection that is gone is seen when it is read */
}

/* What there is to say, as far as there is room; poll says when there is more. */
static void tell_news(void)
{
	if (keeper.connection < 0 || !keeper.served)
		return;
	if (keeper.tell_froze && tell(FROZE))
		keeper.tell_froze = 0;
	if (keeper.tell_gate && tell(LEFT_GATE))
		keeper.tell_gate = 0;
	if (keeper.has_status && !keeper.told_end && tell(ENDED))
		keeper.told_end = 1;
}

static int has_news(void)
{
	return keeper.served && (keeper.tell_froze || keeper.tell_gate || (keeper.has_status && !keeper.told_end));
}

/* -- messages ---------------------------------------------------------------------------------- */

static void hand_over(void)
{
	struct news news;
	struct control control = { .level = SOL_SOCKET_, .type = SCM_RIGHTS_ };
	struct slice slices[3] = {
		{ &news, sizeof news }, { keeper.names, keeper.deposit.names_length },
		{ keeper.blob, keeper.blob_length },
	};
	struct message message = { .slices = slices, .slice_count = 3 };
	describe(&news, keeper.deposited ? DEPOSITED : EMPTY);
	news.names_length = keeper.deposit.names_length;
	if (keeper.fd_count) {
		for (int i = 0; i < keeper.fd_count; i++)
			control.fds[i] = keeper.fds[i];
		control.length = 16 + 4 * (u64)keeper.fd_count;
		message.control = &control;
		message.control_length = (control.length + 7) & ~7UL;
	}
	if (send(&message) < 0)
		return;		/* the daemon waits, gives up and asks again */
	keeper.served = 1;
	keeper.told_end = keeper.has_status;
}

/* The received buffer now holds the blob; the other one is the next to receive. */
static void keep_blob(byte *at, u64 length)
{
	keeper.blob = at;
	keeper.blob_length = length;
	keeper.spare = 1 - keeper.spare;
}

static int deposit(byte *data, u64 length, int *fds, int count)
{
	struct deposit_head *head = (struct deposit_head *)data;
	if (length < sizeof *head || head->names_length > NAMES_MAX
	    || head->names_length > length - sizeof *head || head->output > LEAVE)
		return 0;
	if (head->master != NONE && (head->master >= count || head->ring >= count
	    || head->conduit >= count || !head->capacity))
		return 0;
	for (int i = 0; i < keeper.fd_count; i++)
		close_fd(keeper.fds[i]);
	for (int i = 0; i < count; i++)
		keeper.fds[i] = fds[i];
	keeper.fd_count = count;
	keeper.deposit = *head;
	memcpy(keeper.names, data + sizeof *head, head->names_length);
	keep_blob(data + sizeof *head + head->names_length,
		  length - sizeof *head - head->names_length);
	keeper.deposited = keeper.served = 1;
	return 1;
}

static void set_timer(u64 at_ns)
{
	u64 timer[4] = { 0, 0, at_ns / 1000000000, at_ns % 1000000000 };
	sys(NR_timerfd_settime, keeper.timer, TIMER_ABSTIME_, timer, 0);
}

static void set_deadline(u64 deadline_ns)
{
	keeper.deadline_ns = deadline_ns;
	set_timer(deadline_ns);
}

/* -- the exec gate ----------------------------------------------------------------------------- */

/* It belongs to whoever judges from here on, or to nobody: a daemon that asks learns so each time. */
static void leave_gate(void)
{
	u64 left = 1;
	if (keeper.gate_page < 0)
		return;
	close_fd(keeper.gate);
	keeper.gate = -1;
	sys(NR_pwrite64, keeper.gate_page, &left, sizeof left, GATE_LEFT_AT);
	keeper.tell_gate = 1;
}

static int judged(void)
{
	u64 kinds = 0;
	sys(NR_pread64, keeper.gate_page, &kinds, sizeof kinds, GATE_WORD_AT);
	return kinds != 0;
}

/* The page is asked when a call has been taken: who changes it knows that what is called after that
 * is judged. A call that it comes too late for is left in the page, to be answered by another. */
static void pass_calls(short events)
{
	for (int i = 0; i < PASSED_FIRST && (events & POLLIN_); i++) {
		struct gate_call call = { 0 };
		if (sys(NR_ioctl, keeper.gate, GATE_RECEIVE, &call, 0) == 0) {
			struct gate_answer answer = { .id = call.id, .flags = GATE_GO_ON_ };
			if (judged()) {
				sys(NR_pwrite64, keeper.gate_page, &call, sizeof call, GATE_CALLS_AT);
				leave_gate();
				return;
			}
			sys(NR_ioctl, keeper.gate, GATE_SEND, &answer, 0);
		}
		/* Receiving waits if there is nothing, so that it is never done unasked. */
		struct poll more = { keeper.gate, POLLIN_, 0 };
		word now[2] = { 0, 0 };
		events = sys6(NR_ppoll, (word)&more, 1, (word)now, 0, 8, 0) > 0 ? more.revents : 0;
	}
	if (events & POLLHUP_ && !(events & POLLIN_)) {	/* nothing runs under the filter now */
		close_fd(keeper.gate);
		keeper.gate = -1;
	}
}

/* Whether the descriptors that came along are ours now. */
static int obey(byte *data, u64 length, int *fds, int count)
{
	switch (data[0]) {
	case DEPOSIT:
		return deposit(data, length, fds, count);
	case UPDATE:
		if (keeper.deposited && length >= sizeof(struct update_head))
			keep_blob(data + sizeof(struct update_head), length - sizeof(struct update_head));
		return 0;
	case COLLECT:
		hand_over();
		return 0;
	case OUTPUT:
		if (length >= 2 && data[1] <= LEAVE)
			keeper.deposit.output = data[1];
		return 0;
	case DUMP:
		keeper.dumping = length >= 2 && data[1];
		return 0;
	case LEASE:
		if (length < sizeof(struct lease_head) || count > 1)
			return 0;
		set_deadline(((struct lease_head *)data)->deadline_ns);
		if (count) {
			close_fd(keeper.freezer);
			keeper.freezer = fds[0];
		}
		return count;
	case GATE:
		if (judged())
			leave_gate();
		return 0;
	case RELEASE:
		finish();
	}
	return 0;
}

static void disconnect(void)
{
	close_fd(keeper.connection);
	keeper.connection = -1;
	keeper.served = keeper.told_end = keeper.resting = 0;
	if (!keeper.deposited)
		finish();	/* its daemon died, or gave up, before anybody could know the session */
}

/* Read what the daemon sent. */
static void hear(void)
{
	for (int i = 0; i < HEARD_FIRST && keeper.connection >= 0; i++) {
		struct control control;
		struct slice slice = { buffers[keeper.spare], MESSAGE_MAX };
		struct message message = { .slices = &slice, .slice_count = 1,
					   .control = &control, .control_length = sizeof control };
		byte *data = buffers[keeper.spare];
		int count = 0, into = keeper.spare;
		word length = sys(NR_recvmsg, keeper.connection, &message,
				  MSG_DONTWAIT_ | MSG_CLOEXEC_, 0);
		if (length == -EAGAIN_ || length == -EINTR_)
			break;
		if (message.control_length >= 16 && length >= 0 && control.type == SCM_RIGHTS_)
			count = (int)((control.length - 16) / 4);
		int whole = length > 0 && !(message.flags & (MSG_TRUNC_ | MSG_CTRUNC_));
		if (!whole || !obey(data, (u64)length, control.fds, count))
			for (int j = 0; j < count; j++)
				close_fd(control.fds[j]);
		keeper.touched[into] = 1;
		if (length <= 0)
			disconnect();
	}
	if (keeper.touched[keeper.spare]) {	/* this may have been the last message for long */
		sys(NR_madvise, buffers[keeper.spare], MESSAGE_MAX, MADV_DONTNEED_, 0);
		keeper.touched[keeper.spare] = 0;
	}
}

static void meet(void)
{
	int peer[3], size = sizeof peer;
	word fd = sys(NR_accept4, keeper.listener, 0, 0, NONBLOCK_CLOEXEC_);
	if (fd < 0)
		return;
	if (sys6(NR_getsockopt, fd, SOL_SOCKET_, SO_PEERCRED_, (word)peer, (word)&size, 0) < 0
	    || (peer[1] != 0 && peer[1] != keeper.uid)) {
		close_fd((int)fd);
		return;
	}
	hear();		/* what the daemon before it sent counts */
	if (keeper.connection >= 0)
		disconnect();
	keeper.connection = (int)fd;
}

/* -- how it ended ------------------------------------------------------------------------------ */

/* The beginning of a file of /proc/PID; gives how much there is. */
static word read_process(int pid, const char *file, char *into, u64 size)
{
	char path[32] = "/proc/", digits[12];
	int at = 6, count = 0;
	for (; pid; pid /= 10)
		digits[count++] = (char)('0' + pid % 10);
	while (count)
		path[at++] = digits[--count];
	while (*file)
		path[at++] = *file++;
	path[at] = 0;
	word fd = sys(NR_openat, AT_FDCWD_, path, 0, 0);
	if (fd < 0)
		return 0;
	word length = sys(NR_read, fd, into, size, 0);
	close_fd((int)fd);
	return length;
}

/* The init renames itself before it exits; see hold_init.c. */
static int signal_by_name(int pid)
{
	char name[16] = "";
	int found = 0;
	word length = read_process(pid, "/comm", name, sizeof name - 1);
	const char *wanted = "hold:sig";
	int i = 0;
	for (; wanted[i]; i++)
		if (i >= length || name[i] != wanted[i])
			return 0;
	for (; i < length && name[i] >= '0' && name[i] <= '9'; i++)
		found = found * 10 + (name[i] - '0');
	return found;
}

static void reap(void)
{
	byte read_off[128];
	while (sys(NR_read, keeper.signals, read_off, sizeof read_off, 0) > 0)
		;
	for (;;) {
		int info[32] = { 0 }, status = 0;
		if (sys6(NR_waitid, P_ALL_, 0, (word)info, WEXITED_ | WNOHANG_ | WNOWAIT_ | WALL_, 0, 0)
		    < 0 || !info[4])
			return;
		int pid = info[4], by_name = pid == keeper.session ? signal_by_name(pid) : 0;
		sys(NR_wait4, pid, &status, WALL_, 0);
		if (pid != keeper.session || keeper.has_status)
			continue;
		int by_signal = by_name ? by_name : status & 0x7f;
		keeper.has_status = 1;
		keeper.by = by_signal ? BY_SIGNAL : BY_EXIT;
		keeper.status = by_signal ? by_signal : (status >> 8) & 0xff;
	}
}

/* -- its lease --------------------------------------------------------------------------------- */

static int is_traced(int pid)
{
	static const char wanted[] = "\nTracerPid:\t";
	char status[1024];
	word length = read_process(pid, "/status", status, sizeof status);
	for (word i = 0; i < length; i++) {
		word same = 0;
		while (wanted[same] && i + same < length && status[i + same] == wanted[same])
			same++;
		if (!wanted[same])
			return i + same < length && status[i + same] != '0';
	}
	return 0;
}

/* What CRIU has stopped does nothing, and cannot do what CRIU asks of it once it is frozen: then CRIU
 * would wait for it. It is frozen as soon as CRIU has let go of it. */
static int is_dumped(void)
{
	if (keeper.dumping)
		keeper.dumping = (byte)is_traced(keeper.session);
	return keeper.dumping;
}

static void check_deadline(void)
{
	u64 now[2], expirations;
	if (!keeper.deadline_ns)
		return;
	sys(NR_read, keeper.timer, &expirations, sizeof expirations, 0);
	sys(NR_clock_gettime, CLOCK_BOOTTIME_, now, 0, 0);
	if (now[0] * 1000000000 + now[1] < keeper.deadline_ns)
		return;
	if (is_dumped()) {
		set_timer(now[0] * 1000000000 + now[1] + TRACED_AGAIN_NS);
		return;
	}
	set_deadline(0);
	sys(NR_write, keeper.freezer, "1", 1, 0);
	keeper.deposit.output = LEAVE;	/* what is frozen is another's to show, perhaps */
	keeper.tell_froze = 1;
}

/* -- output while nobody else moves it -------------------------------------------------------- */

static word splice(int from, int to, u64 length)
{
	return sys6(NR_splice, from, 0, to, 0, (word)length, SPLICE_NONBLOCK_);
}

/* The conduit's bytes into the ring. The ring's own note of its head may be one transfer behind the
 * file position, which the kernel moves with the data; see session_memory/output_ring.py. */
static int store(void)
{
	int conduit = keeper.fds[keeper.deposit.conduit], ring = keeper.fds[keeper.deposit.ring];
	u64 head, capacity = keeper.deposit.capacity;
	int waiting = 0;
	if (sys(NR_pread64, ring, &head, sizeof head, keeper.deposit.head_at) != sizeof head)
		return 0;
	word position = sys(NR_lseek, ring, 0, SEEK_CUR_, 0);
	if (position < (word)keeper.deposit.data_at)
		return 0;
	u64 at = ((u64)position - keeper.deposit.data_at) % capacity;
	head += (at + capacity - head % capacity) % capacity;
	sys(NR_ioctl, conduit, FIONREAD_, &waiting, 0);
	for (;;) {
		if (sys(NR_pwrite64, ring, &head, sizeof head, keeper.deposit.head_at) < 0)
			return 0;
		if (waiting <= 0)
			return 1;
		at = head % capacity;
		if (at == 0)
			sys(NR_lseek, ring, keeper.deposit.data_at, SEEK_SET_, 0);
		u64 room = capacity - at;
		word moved = splice(conduit, ring, (u64)waiting < room ? (u64)waiting : room);
		if (moved <= 0)
			return 0;
		head += (u64)moved;
		waiting -= (int)moved;
	}
}

/* A burst; true unless there is nothing to come for now. */
static int keep_output(int master)
{
	if (!store())
		return 0;
	for (int i = 0; i < BURST_READS; i++) {
		word count = splice(master, keeper.fds[keeper.deposit.conduit], PAGE);
		if (count == -EAGAIN_)
			break;
		if (count <= 0)
			return store() && 0;
	}
	return store();
}

static int drop_output(int master)
{
	word count = sys(NR_read, master, buffers[keeper.spare], PAGE, 0);
	keeper.touched[keeper.spare] = 1;
	return count > 0 || count == -EAGAIN_;
}

static int master_fd(void)
{
	if (keeper.connection >= 0 || !keeper.deposited || keeper.deposit.master == NONE
	    || keeper.deposit.output == LEAVE)
		return -1;
	return keeper.fds[keeper.deposit.master];
}

static void move_output(void)
{
	int master = master_fd();
	if (master >= 0)
		keeper.resting = keeper.deposit.output == KEEP ? !keep_output(master)
							      : !drop_output(master);
}

/* -- the loop ---------------------------------------------------------------------------------- */

/* Whatever the launcher had open is not for us: a pipe held here would never end. */
static void close_others(const int *kept, int count)
{
	u32 from = 3;
	for (;;) {
		u32 next = ~0U;
		for (int i = 0; i < count; i++)
			if (kept[i] >= (int)from && (u32)kept[i] < next)
				next = (u32)kept[i];
		if (next > from)
			sys(NR_close_range, from, next == ~0U ? next : next - 1, 0, 0);
		if (next == ~0U)
			return;
		from = next + 1;
	}
}

static void prepare(void)
{
	u64 all = ~0UL, child = 1UL << (SIGCHLD_ - 1);
	sys(NR_rt_sigprocmask, 0, &all, 0, 8);
	keeper.signals = (int)sys(NR_signalfd4, -1, &child, 8, NONBLOCK_CLOEXEC_);
	keeper.timer = (int)sys(NR_timerfd_create, CLOCK_BOOTTIME_, NONBLOCK_CLOEXEC_, 0, 0);
	keeper.freezer = -1;
	keeper.uid = (int)sys(NR_geteuid, 0, 0, 0, 0);
	sys(NR_prctl, PR_SET_NAME_, "hold-keeper", 0, 0);
	sys(NR_prctl, PR_SET_CHILD_SUBREAPER_, 1, 0, 0);
	sys(NR_setsid, 0, 0, 0, 0);
	sys(NR_chdir, "/", 0, 0, 0);
	/* A machine without memory should end programs, not the custody of them. Not permitted to
	 * everybody; a score that was raised may be lowered again all the same. */
	word adjustment = sys(NR_openat, AT_FDCWD_, "/proc/self/oom_score_adj", O_RDWR_, 0);
	char sign = '-';
	if (adjustment >= 0) {
		sys(NR_read, adjustment, &sign, 1, 0);
		if (sys(NR_write, adjustment, "-900", 4, 0) < 0 && sign != '-')
			sys(NR_write, adjustment, "0", 1, 0);
	}
	close_fd((int)adjustment);
	word null = sys(NR_openat, AT_FDCWD_, "/dev/null", O_RDWR_, 0);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		if (null != fd)
			sys(NR_dup3, null, fd, 0, 0);
	if (null > 2)
		close_fd((int)null);
}

__attribute__((used, noreturn)) static void start(word *stack)
{
	char **arguments = (char **)(stack + 1);
	if (stack[0] != 5 && stack[0] != 7)
		leave(64);
	keeper.session = number(arguments[1]);
	keeper.connection = number(arguments[2]);
	keeper.listener = number(arguments[3]);
	keeper.path = arguments[4];
	keeper.gate = stack[0] == 7 ? number(arguments[5]) : -1;
	keeper.gate_page = stack[0] == 7 ? number(arguments[6]) : -1;
	int kept[] = { keeper.connection, keeper.listener, keeper.gate, keeper.gate_page };
	close_others(kept, 4);
	prepare();
	reap();		/* it may have ended before there was anybody to hear of it */
	for (;;) {
		int master = keeper.resting ? -1 : master_fd();
		struct poll polled[6] = {
			{ keeper.signals, POLLIN_, 0 }, { keeper.timer, POLLIN_, 0 },
			{ keeper.listener, POLLIN_, 0 },
			{ keeper.connection, has_news() ? POLLIN_ | POLLOUT_ : POLLIN_, 0 },
			{ master, POLLIN_, 0 }, { keeper.gate, POLLIN_, 0 },
		};
		/* Once it has ended, nothing more comes; until then its terminal may be opened again. */
		int again = keeper.resting && !keeper.has_status && master_fd() >= 0;
		word pause[2] = { LOOK_AGAIN_MS / 1000, LOOK_AGAIN_MS % 1000 * 1000000 };
		word ready = sys6(NR_ppoll, (word)polled, 6, again ? (word)pause : 0, 0, 8, 0);
		if (ready == 0)
			keeper.resting = 0;
		if (ready <= 0)
			continue;
		if (polled[0].revents)
			reap();
		if (polled[3].revents)
			hear();
		if (polled[1].revents) {
			hear();		/* the deadline may have been extended a moment ago */
			check_deadline();
		}
		if (polled[2].revents)
			meet();
		if (polled[4].revents)
			move_output();
		if (polled[5].revents && keeper.gate >= 0)
			pass_calls(polled[5].revents);
		tell_news();
	}
}
