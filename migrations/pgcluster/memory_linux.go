package pgcluster

import "syscall"

// memoryBase is a file system in memory with room for a test's cluster (about
// 80 MB and 8 MB a database), or "". On a disk that is busy with a build, a
// clone of a database was ten times slower.
func memoryBase() string {
	const dir, tmpfs, room = "/dev/shm", 0x01021994, 2 << 30 // statfs(2): TMPFS_MAGIC
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil || st.Type != tmpfs {
		return ""
	}
	if st.Bavail*uint64(st.Bsize) < room || st.Ffree < 100_000 {
		return ""
	}
	return dir
}
