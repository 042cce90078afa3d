/* What a program without libc needs: system calls, the entry point, and the end of a tree.
 *
 * A program includes this first and defines `static void start(word *stack)`, which gets the stack
 * as the kernel made it: the count of arguments, the arguments, a zero, the environment.
 * Deliberately knows x86_64 and aarch64 only, and includes nothing: no header need be installed.
 */
typedef long word;

enum {
	O_RDWR_ = 2,
	AT_FDCWD_ = -100,
	PR_SET_NAME_ = 15,
	PR_SET_CHILD_SUBREAPER_ = 36,
	WNOHANG_ = 1,
	WALL_ = 0x40000000,
	SIGKILL_ = 9,
	SIGCHLD_ = 17,
	EINTR_ = 4,
	ECHILD_ = 10,
};

enum {
	KILL_ROUNDS = 500,	/* times STEP_NS: a tree that forks faster than it dies is given up */
	STEP_NS = 10000000,
	CHILDREN_BYTES = 4096,	/* of the children list read per round; the rest comes in the next */
};

#if defined(__x86_64__)
enum {
	NR_read = 0, NR_write = 1, NR_close = 3, NR_lseek = 8, NR_rt_sigaction = 13,
	NR_rt_sigprocmask = 14, NR_ioctl = 16, NR_pread64 = 17, NR_pwrite64 = 18, NR_madvise = 28,
	NR_nanosleep = 35, NR_getpid = 39, NR_sendmsg = 46, NR_recvmsg = 47, NR_getsockopt = 55,
	NR_clone = 56, NR_execve = 59, NR_wait4 = 61, NR_kill = 62, NR_fcntl = 72, NR_chdir = 80,
	NR_geteuid = 107, NR_setsid = 112, NR_prctl = 157, NR_clock_gettime = 228,
	NR_exit_group = 231, NR_waitid = 247, NR_openat = 257, NR_unlinkat = 263, NR_ppoll = 271,
	NR_splice = 275, NR_timerfd_create = 283, NR_timerfd_settime = 286, NR_accept4 = 288,
	NR_signalfd4 = 289, NR_dup3 = 292, NR_close_range = 436,
};

static word sys6(word n, word a, word b, word c, word d, word e, word f)
{
	word r;
	register word r10 __asm__("r10") = d;
	register word r8 __asm__("r8") = e;
	register word r9 __asm__("r9") = f;
	__asm__ volatile("syscall" : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}
__asm__(".globl _start\n_start:\n xor %ebp,%ebp\n mov %rsp,%rdi\n and $-16,%rsp\n call start\n hlt\n");
#elif defined(__aarch64__)
enum {
	NR_dup3 = 24, NR_fcntl = 25, NR_ioctl = 29, NR_unlinkat = 35, NR_chdir = 49, NR_openat = 56,
	NR_close = 57, NR_lseek = 62, NR_read = 63, NR_write = 64, NR_pread64 = 67, NR_pwrite64 = 68,
	NR_ppoll = 73, NR_signalfd4 = 74, NR_splice = 76, NR_timerfd_create = 85,
	NR_timerfd_settime = 86, NR_exit_group = 94, NR_waitid = 95, NR_nanosleep = 101,
	NR_clock_gettime = 113, NR_kill = 129, NR_rt_sigaction = 134, NR_rt_sigprocmask = 135,
	NR_setsid = 157, NR_prctl = 167, NR_getpid = 172, NR_geteuid = 175, NR_getsockopt = 209,
	NR_sendmsg = 211, NR_recvmsg = 212, NR_clone = 220, NR_execve = 221, NR_madvise = 233,
	NR_accept4 = 242, NR_wait4 = 260, NR_close_range = 436,
};

static word sys6(word n, word a, word b, word c, word d, word e, word f)
{
	register word x8 __asm__("x8") = n;
	register word x0 __asm__("x0") = a;
	register word x1 __asm__("x1") = b;
	register word x2 __asm__("x2") = c;
	register word x3 __asm__("x3") = d;
	register word x4 __asm__("x4") = e;
	register word x5 __asm__("x5") = f;
	__asm__ volatile("svc #0" : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory", "cc");
	return x0;
}
__asm__(".globl _start\n_start:\n mov x29,#0\n mov x0,sp\n bl start\n");
#else
#error "the native programs know x86_64 and aarch64"
#endif

#define sys(n, a, b, c, d) sys6(n, (word)(a), (word)(b), (word)(c), (word)(d), 0, 0)

static void leave(int status)
{
	for (;;)
		sys(NR_exit_group, status, 0, 0, 0);
}

static int number(const char *text)
{
	int value = 0;
	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || value > 1000000)
			return -1;
		value = value * 10 + (*text - '0');
	}
	return value;
}

static void pause_step(void)
{
	word step[2] = { 0, STEP_NS };
	sys(NR_nanosleep, step, 0, 0, 0);
}

/* Signal every direct child; gives how many could be signalled. Orphans of the tree are direct
 * children, because this process is their subreaper: nothing outside the tree is ever in the list. */
__attribute__((noinline))	/* its list would be in every caller's stack, touched or not */
static int signal_children(int first, int second)
{
	char list[CHILDREN_BYTES];
	int reached = 0, pid = 0;
	word fd = sys(NR_openat, AT_FDCWD_, "/proc/thread-self/children", 0, 0);
	if (fd < 0)
		return 0;
	word length = sys(NR_read, fd, list, sizeof list, 0);
	sys(NR_close, fd, 0, 0, 0);
	for (word i = 0; i < length; i++) {
		if (list[i] >= '0' && list[i] <= '9') {
			pid = pid * 10 + (list[i] - '0');
			continue;
		}
		/* A number without its blank was cut off by the buffer: never used. */
		if (pid > 1 && sys(NR_kill, pid, first, 0, 0) == 0) {
			reached++;
			if (second)
				sys(NR_kill, pid, second, 0, 0);
		}
		pid = 0;
	}
	return reached;
}

/* Reaps what is dead; true when no child is left. */
static int reaped_all(void)
{
	int status;
	for (;;) {
		word pid = sys(NR_wait4, -1, &status, WNOHANG_ | WALL_, 0);
		if (pid == -ECHILD_)
			return 1;
		if (pid <= 0 && pid != -EINTR_)
			return 0;
	}
}

/* SIGKILL to every child until none is left: what they leave falls to us, and is next. */
static void kill_children(void)
{
	for (int round = 0; round < KILL_ROUNDS && signal_children(SIGKILL_, 0); round++) {
		if (reaped_all())
			return;
		pause_step();
	}
}
