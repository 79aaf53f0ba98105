"""A tape between two ends of a connection: it forwards bytes and keeps them.

It knows TCP and must not know PostgreSQL. One recorder in front of pgseek and one behind it hold what went in and what
came out, of the very same session; so the two can be compared byte for byte, process numbers and secrets included.
"""
import socket
import threading

import cluster


class Recording:
    """One connection: what its client said and what its server said."""

    def __init__(self, client, server):
        self.client = bytearray()
        self.server = bytearray()
        self.sockets = (client, server)
        self.threads = []

    def wait(self, seconds=30):
        for thread in self.threads:
            thread.join(seconds)
            assert not thread.is_alive(), "a recorded connection does not end"


class Recorder(cluster.Endpoint):
    """Listens, and forwards each connection to (host, port). `step` cuts what is forwarded into writes of that size."""

    def __init__(self, host, port, step=None):
        self.upstream = (host, port)
        self.step = step
        self.recordings = []
        self.listener = socket.create_server((self.host, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def take(self):
        """The recordings since the last call, each at its end."""
        taken, self.recordings = self.recordings, []
        for recording in taken:
            recording.wait()
        return taken

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.upstream)
            except OSError:
                client.close()
                continue
            self._start(Recording(client, server))

    def _start(self, recording):
        client, server = recording.sockets
        for source, target, tape in ((client, server, recording.client), (server, client, recording.server)):
            target.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            recording.threads.append(threading.Thread(target=self._forward, args=(source, target, tape), daemon=True))
        self.recordings.append(recording)
        for thread in recording.threads:
            thread.start()

    def _forward(self, source, target, tape):
        try:
            while piece := source.recv(65536):
                tape += piece
                step = self.step or len(piece)
                for at in range(0, len(piece), step):
                    target.sendall(piece[at:at + step])
        except OSError:
            pass
        try:
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
