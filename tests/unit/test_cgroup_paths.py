"""Finding one's own v2 group and the host's real mounts in the kernel's texts."""

from __future__ import annotations

from holdfast.adapters.halt.cgroup import locate, unescaped
from holdfast.adapters.launch.mounts import host_mounts

UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
MODERN = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
VERSION_1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"


def test_a_host_with_only_v2() -> None:
    own = locate(MODERN, "0::/user.slice/user-1000.slice\n")
    assert own == "/sys/fs/cgroup/user.slice/user-1000.slice"


def test_a_hybrid_host_has_v2_beside_the_v1_controllers() -> None:
    membership = "4:memory:/elsewhere\n1:cpu:/\n0::/\n"
    assert locate(VERSION_1 + UNIFIED, membership) == "/sys/fs/cgroup/unified"


def test_a_host_without_v2_has_none() -> None:
    assert locate(VERSION_1, "1:cpu:/\n") is None
    assert locate(VERSION_1, "1:cpu:/\n0::/\n") is None
    assert locate(MODERN, "1:cpu:/\n") is None


def test_a_mount_of_only_a_part_of_the_hierarchy() -> None:
    part = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n"
    assert locate(part, "0::/docker/abc/inner\n") == "/sys/fs/cgroup/inner"
    assert locate(part, "0::/docker/abc\n") == "/sys/fs/cgroup"


def test_a_group_outside_of_what_is_mounted_falls_back_to_the_mount() -> None:
    assert locate(MODERN, "0::/../other\n") == "/sys/fs/cgroup"


def test_blanks_and_other_bytes_in_paths() -> None:
    assert unescaped(r"/mnt/my\040disk\134x") == r"/mnt/my disk\x"
    blank = "30 23 0:26 / /cg\\040two rw - cgroup2 cgroup2 rw\n"
    assert locate(blank, "0::/a\n") == "/cg two/a"


def test_real_mounts_are_those_with_files_of_their_own_parents_first() -> None:
    text = (
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "51 27 254:2 / /home/ann/disk rw - ext4 /dev/vdb rw\n"
        "50 27 254:1 / /home rw shared:1 - ext4 /dev/vdc rw\n"
        "52 27 0:40 / /run rw - tmpfs tmpfs rw\n"
        "53 52 0:41 / /run/netns/x rw - nsfs nsfs rw\n"
        "54 27 0:42 / /home-of-others rw - nfs4 server:/x rw\n"
        "55 27 0:43 / /tmp rw - tmpfs tmpfs rw\n"
        "56 27 0:44 / /tmp rw - tmpfs tmpfs rw\n"
        "22 27 0:21 / /proc rw - proc proc rw\n"
        "24 27 0:6 / /dev rw - devtmpfs devtmpfs rw\n"
        "25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw\n"
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "57 27 0:45 / /misc rw - autofs systemd-1 rw\n"
    )
    found = host_mounts(text)
    assert list(found) == ["/home", "/home/ann/disk", "/home-of-others", "/run", "/tmp"]
    assert found["/tmp"] == {55, 56}
