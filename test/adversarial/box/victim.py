# Stands for the person's other programs: holds a secret in its environment and memory, a terminal, a key and open files; notes what is
# done to it. Prints its places as one line of JSON, then answers each line of its input with what it has seen.
import base64, ctypes, fcntl, json, os, pty, select, signal, struct, sys, termios, tty

secret = os.environ["VICTIM_SECRET"]
memory = ctypes.create_string_buffer(("memory of the victim " + secret).encode())
first = memory.raw
signals = []
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    signal.signal(number, lambda received, _: signals.append(received))
master, slave = pty.openpty()
tty.setraw(slave)
print(json.dumps({"pid": os.getpid(), "tty": os.ttyname(slave), "address": ctypes.addressof(memory), "length": len(first)}), flush=True)
for line in sys.stdin:
    shown = b""
    while select.select([master], [], [], 0)[0]:
        shown += os.read(master, 65536)
    typed = struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, b"\0\0\0\0"))[0]
    termios.tcflush(slave, termios.TCIFLUSH)
    print(json.dumps({"signals": signals, "shown": base64.b64encode(shown).decode(), "typed": typed, "memory": memory.raw == first,
                      "size": fcntl.ioctl(slave, termios.TIOCGWINSZ, b"\0" * 8).hex()}), flush=True)
    signals.clear()
