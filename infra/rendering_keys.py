"""The renderer's temporary storage, which the doctor compares. Does not import CDK."""

# Space for the browser (214 MB unpacked), for Chromium's files (there is no shared memory), and for
# pages' files. Lambda's default is 512 MB.
STORAGE_MB = 1024
