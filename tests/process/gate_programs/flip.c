/* Executes DIRECTORY/good 150 times while a thread turns the path into DIRECTORY/evil and back. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[4096], good[4096], evil[4096];
static volatile int over;

static void pause_a_moment(void) {
    for (volatile int n = 0; n < 200; n++)
        ;
}

static void *turn(void *none) {
    size_t from = 0;
    while (path[from] && good[from] == evil[from])
        from++;
    while (!over) {
        strcpy(path + from, evil + from);
        pause_a_moment();
        strcpy(path + from, good + from);
        pause_a_moment();
    }
    return none;
}

int main(int argc, char **argv) {
    pthread_t other;
    if (argc != 2)
        return 2;
    snprintf(good, sizeof good, "%s/good", argv[1]);
    snprintf(evil, sizeof evil, "%s/evil", argv[1]);
    strcpy(path, good);
    pthread_create(&other, 0, turn, 0);
    for (int i = 0; i < 150; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            char *words[] = {"x", 0}, *none[] = {0};
            execve(path, words, none);
            _exit(1);
        }
        waitpid(pid, 0, 0);
    }
    over = 1;
    pthread_join(other, 0);
    return 0;
}
