/* hold-init: the first process of a session.
 *
 *   hold-init [--status-fd N] [--subreaper] -- /absolute/program argv0 [arg...]
 *
 * Starts the program as leader of a new terminal session on descriptor 0, reaps whatever becomes
 * its child, and ends when the program ends, telling the true status:
 *
 *   ended by itself     name "hold:exit",   exit status = the program's
 *   ended by signal N   name "hold:sig<N>", exit status = 128 + N
 *
 * The name is this process's comm, readable in /proc/PID/comm while it is a zombie. An exit status
 * alone cannot tell `exit 137` from SIGKILL, and pid 1 of a pid namespace cannot die by a signal
 * to show it.
 *
 * On the status descriptor (a socket) the child writes a zero int right before execve, so that
 * the kernel's SCM_CREDENTIALS tell the reader its pid in the reader's own numbering, and errno
 * if execve fails. End of file means that the program runs.
 *
 * Deliberately absent: libc (12 kB resident instead of 700, and one program for every
 * distribution), forwarding of signals (the layer signals what it means, never through here),
 * configuration.
 */
#include "freestanding.h"

enum {
	ST_CLOEXEC = 1,
	F_SETFD_ = 2,
	TIOCSCTTY_ = 0x540E,
	SIGHUP_ = 1,
	SIGCONT_ = 18,
};

enum {
	GRACE_STEPS = 20,	/* times STEP_NS: what is left of a tree gets 200 ms after SIGHUP */
};

static int equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* The terminal and everything inherited belong to the program. Kept open here, the terminal would
 * never hang up and a pipe to the program would never end. */
static void let_go_of_descriptors(void)
{
	word null = sys(NR_openat, AT_FDCWD_, "/dev/null", O_RDWR_, 0);
	for (int fd = 0; fd < 3; fd++) {
		if (null < 0)
			sys(NR_close, fd, 0, 0, 0);
		else if (null != fd)
			sys(NR_dup3, null, fd, 0, 0);
	}
	if (sys(NR_close_range, 3, ~0U, 0, 0) < 0)
		for (int fd = 3; fd < 1024; fd++)
			sys(NR_close, fd, 0, 0, 0);
}

/* A stray signal must not take the init away before its program: nobody could then tell how the
 * program ended. SIGKILL remains. Done after the fork, so the program has the defaults. */
static void ignore_signals(void)
{
	static const unsigned char ignored[] = { 1, 2, 3, 10, 12, 13, 14, 15, 20, 21, 22 };
	for (unsigned i = 0; i < sizeof ignored; i++) {
		word action[4] = { 1 /* SIG_IGN */, 0, 0, 0 };
		sys(NR_rt_sigaction, ignored[i], action, 0, 8);
	}
}

/* In a pid namespace the kernel does this when pid 1 ends; without one it is ours to do. A child
 * that may not be signalled (a setuid program) is left to the next subreaper. */
static void end_the_rest(void)
{
	if (reaped_all())
		return;
	signal_children(SIGHUP_, SIGCONT_);
	for (int step = 0; step < GRACE_STEPS; step++) {
		if (reaped_all())
			return;
		pause_step();
	}
	kill_children();
}

static void tell_and_leave(int status)
{
	char name[16] = "hold:exit";
	int by = status & 0x7f;
	if (by) {
		char *end = name + 5;
		*end++ = 's', *end++ = 'i', *end++ = 'g';
		if (by >= 10)
			*end++ = '0' + by / 10;
		*end++ = '0' + by % 10;
		*end = 0;
	}
	sys(NR_prctl, PR_SET_NAME_, name, 0, 0);
	leave(by ? 128 + by : (status >> 8) & 0xff);
}

/* What somebody up the line ignored, a program would inherit as ignored. The libraries of the
 * launcher cannot reach the two signals they keep for themselves (32 and 33); this can. */
static void default_signals(void)
{
	word action[4] = { 0 /* SIG_DFL */, 0, 0, 0 };
	for (int number = 1; number <= 64; number++)
		sys(NR_rt_sigaction, number, action, 0, 8);
}

static void become_program(int status_fd, char **program, char **environment)
{
	int report = 0;
	default_signals();
	sys(NR_setsid, 0, 0, 0, 0);
	sys(NR_ioctl, 0, TIOCSCTTY_, 0, 0);
	if (status_fd >= 0)
		sys(NR_write, status_fd, &report, sizeof report, 0);
	report = -sys(NR_execve, program[0], program + 1, environment, 0);
	if (status_fd >= 0)
		sys(NR_write, status_fd, &report, sizeof report, 0);
	leave(127);
}

__attribute__((used, noreturn)) static void start(word *stack)
{
	int count = (int)stack[0], at = 1, status_fd = -1, subreaper = 0, status = 0;
	char **arguments = (char **)(stack + 1), **environment = arguments + count + 1;

	for (; at < count && !equal(arguments[at], "--"); at++) {
		if (equal(arguments[at], "--subreaper"))
			subreaper = 1;
		else if (equal(arguments[at], "--status-fd") && at + 1 < count)
			status_fd = number(arguments[++at]);
		else
			leave(64);
	}
	if (at + 2 >= count)
		leave(64);
	/* Started by descriptor, the name would be a number. */
	sys(NR_prctl, PR_SET_NAME_, "hold-init", 0, 0);
	if (subreaper)
		sys(NR_prctl, PR_SET_CHILD_SUBREAPER_, 1, 0, 0);
	if (status_fd >= 0)
		sys(NR_fcntl, status_fd, F_SETFD_, ST_CLOEXEC, 0);

	word program = sys(NR_clone, SIGCHLD_, 0, 0, 0);
	if (program == 0)
		become_program(status_fd, arguments + at + 1, environment);
	if (program < 0) {
		int report = -program;
		if (status_fd >= 0)
			sys(NR_write, status_fd, &report, sizeof report, 0);
		leave(71);
	}
	ignore_signals();
	let_go_of_descriptors();
	for (;;) {
		word pid = sys(NR_wait4, -1, &status, WALL_, 0);
		if (pid == program)
			break;
		if (pid == -ECHILD_)	/* cannot be: the program is ours until reaped */
			leave(71);
	}
	if (subreaper)
		end_the_rest();
	tell_and_leave(status);
	__builtin_unreachable();
}
