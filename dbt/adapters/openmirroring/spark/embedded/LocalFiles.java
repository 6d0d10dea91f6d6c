package openmirroring;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Local files on Windows, for which Hadoop's own class calls programs that Spark does not have. */
public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    public static class Raw extends RawLocalFileSystem {
        // Another program, such as a virus scanner, may hold a file for some time.
        private static final int ATTEMPTS = 30;
        private static final long PAUSE = 100;

        public void setPermission(Path path, FsPermission permission) {}

        public void setOwner(Path path, String user, String group) {}

        public FileStatus getFileStatus(Path path) throws IOException {
            FileStatus found = super.getFileStatus(path);
            // this one has no owner and no permissions that it would ask for
            return new FileStatus(found.getLen(), found.isDirectory(), 1, found.getBlockSize(),
                found.getModificationTime(), found.getPath());
        }

        public FileStatus[] listStatus(Path path) throws IOException {
            FileStatus whole = getFileStatus(path);
            if (!whole.isDirectory()) {
                return new FileStatus[] {whole};
            }
            File[] files = pathToFile(path).listFiles();
            if (files == null) {
                throw new IOException(path + " cannot be listed");
            }
            List<FileStatus> found = new ArrayList<FileStatus>();
            for (File file : files) {
                try {
                    found.add(getFileStatus(new Path(path, new Path(null, null, file.getName()))));
                } catch (FileNotFoundException deletedMeanwhile) {
                    // it is no file of this folder
                }
            }
            return (FileStatus[]) found.toArray(new FileStatus[0]);
        }

        /** Rename it, or change nothing. Hadoop would copy it, and delete a part of the original. */
        public boolean rename(Path source, Path target) throws IOException {
            getFileStatus(source); // raises if there is none
            for (int i = 0; i < ATTEMPTS; i++) {
                if (pathToFile(source).renameTo(pathToFile(target))
                    || (pathToFile(target).isDirectory()
                        && handleEmptyDstDirectoryOnWindows(
                            source, pathToFile(source), target, pathToFile(target)))) {
                    return true;
                }
                rest();
            }
            throw new IOException(source + " cannot be renamed to " + target
                + ": another program has one of its files open, or the new name is there. "
                + "Nothing was changed");
        }

        public boolean delete(Path path, boolean recursive) throws IOException {
            boolean isDeleted = super.delete(path, recursive);
            for (int i = 0; !isDeleted && exists(path) && i < ATTEMPTS; i++) {
                rest();
                isDeleted = super.delete(path, recursive);
            }
            return isDeleted;
        }

        private static void rest() throws IOException {
            try {
                Thread.sleep(PAUSE);
            } catch (InterruptedException interrupt) {
                throw new java.io.InterruptedIOException();
            }
        }
    }
}
