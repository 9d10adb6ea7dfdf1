# Runs a command in a pseudo-terminal: what comes on stdin is typed, what it shows goes to stdout, its exit code is ours.
import fcntl, os, pty, select, signal, struct, sys, termios

columns, rows, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', int(rows), int(columns), 0, 0))
signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGKILL))
inputs = [terminal, 0]
while True:
    try:
        ready, _, _ = select.select(inputs, [], [])
        if 0 in ready:
            typed = os.read(0, 65536)
            if typed:
                os.write(terminal, typed)
            else:
                inputs.remove(0)
        if terminal in ready:
            shown = os.read(terminal, 65536)
            if not shown:
                break
            os.write(1, shown)
    except OSError:
        break
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
