# Starts a program as a careless desktop would: with a key in the session's keyring, and with open files that the program inherits.
import ctypes, os, platform, sys

secret, out = os.environ.pop("LAUNCH_SECRET"), sys.argv[1]
number = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(platform.machine())
if number:
    libc = ctypes.CDLL(None)
    libc.syscall(number[1], 1, b"telos-canary-session")
    libc.syscall(number[0], b"user", b"telos-canary", secret.encode(), len(secret), ctypes.c_int(-3))
for path, want in ((out + "/secret.txt", 40), (out, 41)):
    made = os.open(path, os.O_RDONLY)
    os.dup2(made, want, inheritable=True)
    os.close(made)
os.execvp(sys.argv[2], sys.argv[2:])
