// A guest that uses files through wasi-libc, for wasi_folder_test.cc. Functions return -errno or a count.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT(name) __attribute__((export_name(#name))) name

static char path[512];
static char other[512];
static char data[4096];

char* EXPORT(path_at)(void) { return path; }
char* EXPORT(other_at)(void) { return other; }
char* EXPORT(data_at)(void) { return data; }

static int outcome(int result) { return result < 0 ? -errno : result; }

int EXPORT(read_path)(void) {
  int fd = open(path, O_RDONLY);
  if (fd < 0) return -errno;
  int n = outcome((int)read(fd, data, sizeof data));
  close(fd);
  return n;
}

int EXPORT(write_path)(int bytes) {
  FILE* file = fopen(path, "wb");
  if (file == NULL) return -errno;
  int n = (int)fwrite(data, 1, (size_t)bytes, file);
  if (fclose(file) != 0) return -errno;
  return n;
}

int EXPORT(append_path)(int bytes) {
  FILE* file = fopen(path, "ab");
  if (file == NULL) return -errno;
  int n = (int)fwrite(data, 1, (size_t)bytes, file);
  if (fclose(file) != 0) return -errno;
  return n;
}

// Writes, seeks back, overwrites the middle and reads the whole: 1 if it is what it should be.
int EXPORT(seek_path)(void) {
  FILE* file = fopen(path, "w+b");
  char back[16];
  if (file == NULL) return -errno;
  fwrite("0123456789", 1, 10, file);
  fseek(file, 4, SEEK_SET);
  fwrite("XY", 1, 2, file);
  fseek(file, 0, SEEK_SET);
  size_t n = fread(back, 1, sizeof back, file);
  fclose(file);
  return n == 10 && memcmp(back, "0123XY6789", 10) == 0;
}

int EXPORT(open_and_keep)(void) { return outcome(open(path, O_RDONLY)); }
int EXPORT(close_kept)(int fd) { return outcome(close(fd)); }
int EXPORT(make_folder)(void) { return outcome(mkdir(path, 0777)); }
int EXPORT(remove_folder)(void) { return outcome(rmdir(path)); }
int EXPORT(remove_file)(void) { return outcome(unlink(path)); }
int EXPORT(rename_path)(void) { return outcome(rename(path, other)); }
int EXPORT(link_path)(void) { return outcome(link(path, other)); }
int EXPORT(symlink_path)(void) { return outcome(symlink(path, other)); }
int EXPORT(truncate_path)(int bytes) {
  int fd = open(path, O_WRONLY);
  if (fd < 0) return -errno;
  int result = outcome(ftruncate(fd, bytes));
  close(fd);
  return result;
}

int EXPORT(read_link)(void) { return outcome((int)readlink(path, data, sizeof data)); }

int EXPORT(size_of_path)(int follow) {
  struct stat info;
  if ((follow ? stat(path, &info) : lstat(path, &info)) != 0) return -errno;
  return S_ISLNK(info.st_mode) ? 1000000 : (int)info.st_size;
}

// Names joined by '|', in the order given; the count comes back.
int EXPORT(list_path)(void) {
  DIR* folder = opendir(path);
  int count = 0;
  struct dirent* entry;
  if (folder == NULL) return -errno;
  data[0] = 0;
  while ((entry = readdir(folder)) != NULL) {
    if (strlen(data) + strlen(entry->d_name) + 2 < sizeof data) {
      strcat(data, entry->d_name);
      strcat(data, "|");
    }
    count++;
  }
  closedir(folder);
  return count;
}
