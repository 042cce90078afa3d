/* connect_at_once SOCKET PROGRAM ARGUMENT...: connects, then becomes PROGRAM, which has the connection
 * as descriptor 7. It is there long before an interpreter would be. */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int count, char **words)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int connection = socket(AF_UNIX, SOCK_STREAM, 0);
	if (count < 3 || strlen(words[1]) >= sizeof address.sun_path)
		return 64;
	strcpy(address.sun_path, words[1]);
	if (connect(connection, (struct sockaddr *)&address, sizeof address) < 0)
		return 71;
	if (dup2(connection, 7) < 0)
		return 71;
	execv(words[2], words + 2);
	return 127;
}
