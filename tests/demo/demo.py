"""The demo's client: loads a feed, reads pages at several depths, and walks the feed twice while a writer works.

It knows SQL and two ports and must not know how the servers were started. It fails (exit code 1) when pgseek repeats
or loses a row, shows other rows than OFFSET, or does not read a page by its cursor.
"""

import argparse
import collections
import random
import statistics
import sys
import time

import psycopg

ROWS = 1_000_000
PAGE_ROWS = 20
WALK_PAGES = 1_000
DEPTHS = (1, 100, 1_000, 10_000, 50_000)
PAGE_BUFFERS = 30  # what a page by cursor may touch at any depth: one block for each row, and the way down the index
WRITER_ROWS = 3  # rows that the writer inserts, or deletes, after each page

SQL = """SELECT id, created_at, author, title
  FROM posts
 ORDER BY created_at DESC, id DESC
 LIMIT 20 OFFSET %s"""
TAG = " /* pgseek cursor=%s */"

# Posts are written all the time but published in half-hourly slots up to a week later: about a hundred share one
# created_at, and neither id nor the place on disk follows the feed's order.
LOAD = f"""
CREATE TABLE posts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at timestamptz NOT NULL,
    author text NOT NULL,
    title text NOT NULL,
    body text NOT NULL
);
SELECT setseed(0.5);
INSERT INTO posts (created_at, author, title, body)
SELECT date_bin('30 min', timestamptz '2026-01-01 00:00+00' + n * interval '15 s' + random() ^ 3 * interval '7 days',
                timestamptz '2026-01-01 00:00+00'),
       'user' || (random() * 5000)::int, 'Post number ' || n, repeat(md5(n::text), 2)
  FROM generate_series(1, {ROWS}) n;
CREATE INDEX posts_feed ON posts (created_at, id);
CREATE TABLE removed (LIKE posts);
GRANT SELECT ON posts TO demo;
"""


# ---- the two ways to read a page ----


def offset_page(conn, page):
    """Page number `page` (from 1) as applications ask for it."""
    return conn.execute(SQL, ((page - 1) * PAGE_ROWS,)).fetchall()


def tagged_page(conn, page, cursor):
    """The same statement with a tag; the cursor is bound like any value."""
    return conn.execute(SQL + TAG, ((page - 1) * PAGE_ROWS, cursor)).fetchall()


def status(conn, name):
    return conn.info.parameter_status("pgseek." + name)


def offset_walk(conn):
    for page in range(1, WALK_PAGES + 1):
        yield offset_page(conn, page)


def cursor_walk(conn):
    cursor = None
    for page in range(1, WALK_PAGES + 1):
        rows = tagged_page(conn, page, cursor)
        check(status(conn, "action") == ("keyset" if cursor else "first"), f"page {page}: {status(conn, 'action')}")
        cursor = status(conn, "next_cursor")
        yield rows


def cursor_to(conn, page):
    """A cursor that leads to a page: asked for once, by OFFSET, from the page before it."""
    if page == 1:
        return None
    tagged_page(conn, page - 1, None)
    return status(conn, "next_cursor")


# ---- the first table: one page at several depths ----


def median_ms(read, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        read()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def buffers(admin, read):
    """8 kB blocks that the server touches during one read: for everything, and for what is not the page itself."""
    admin.execute("SELECT pg_stat_statements_reset()")
    read()
    query = """SELECT sum(blocks)::int, coalesce(sum(blocks) FILTER (WHERE query NOT LIKE '%FROM posts%'), 0)::int
                 FROM (SELECT query, shared_blks_hit + shared_blks_read AS blocks
                         FROM pg_stat_statements WHERE userid = 'demo'::regrole) s"""
    return admin.execute(query).fetchone()


def measure(admin, read, runs):
    rows = read()
    return rows, median_ms(read, runs), buffers(admin, read)


def compare_depths(admin, direct, proxied):
    lines = []
    for page in DEPTHS:
        progress(f"Reading page {page:,}")
        runs = 25 if page <= 1_000 else 5
        rows, offset_ms, (offset_buffers, _) = measure(admin, lambda: offset_page(direct, page), runs)
        cursor = cursor_to(proxied, page)
        same, seek_ms, (seek_buffers, guard_buffers) = measure(admin, lambda: tagged_page(proxied, page, cursor), 25)
        check(rows == same and len(rows) == PAGE_ROWS, f"page {page:,} differs from the server's own")
        check(seek_buffers - guard_buffers <= PAGE_BUFFERS, f"page {page:,} by cursor touched {seek_buffers} buffers")
        lines.append((page, offset_ms, offset_buffers, seek_ms, seek_buffers, guard_buffers))
    done(f"Read pages {', '.join(f'{page:,}' for page in DEPTHS)} both ways: the same rows")
    return lines


# ---- the second table: a walk while a writer works ----


class Writer:
    """Inserts at the head of the feed and deletes behind the reader, in turns, the same rows in each walk."""

    def __init__(self, conn, feed):
        self.conn = conn
        self.feed = feed  # ids in feed order as they stood before the walk
        self.dice = random.Random(1)
        self.gone = set()
        self.turns = 0

    def after_page(self, page):
        self.turns += 1
        if self.turns % 2:
            self.conn.execute(
                """INSERT INTO posts (created_at, author, title, body)
                   SELECT (SELECT max(created_at) FROM posts), 'writer', 'New', 'Published a moment ago'
                     FROM generate_series(1, %s)""",
                (WRITER_ROWS,),
            )
            return
        behind = self.feed[max(0, (page - 20) * PAGE_ROWS) : (page - 1) * PAGE_ROWS]
        chosen = self.dice.sample([row_id for row_id in behind if row_id not in self.gone], WRITER_ROWS)
        self.gone.update(chosen)
        self.conn.execute(
            """WITH gone AS (DELETE FROM posts WHERE id = ANY (%s) RETURNING *)
               INSERT INTO removed SELECT * FROM gone""",
            (chosen,),
        )

    def undo(self):
        self.conn.execute("DELETE FROM posts WHERE id > %s", (ROWS,))
        self.conn.execute("INSERT INTO posts OVERRIDING SYSTEM VALUE SELECT * FROM removed")
        self.conn.execute("TRUNCATE removed")
        self.conn.execute("VACUUM ANALYZE posts")


def feed_ids(conn):
    """The independent list: the ids of the part of the feed that is walked, and some more, in order."""
    query = "SELECT id FROM posts ORDER BY created_at DESC, id DESC LIMIT %s"
    return [row[0] for row in conn.execute(query, ((WALK_PAGES + 100) * PAGE_ROWS,))]


def walk(name, admin, pages):
    """Walks the feed; returns rows shown, shown again, and lost, and the reader's own seconds.

    Only rows that stood for the whole walk can be lost: those of the list before the walk that are there after it, as
    far down as the walk came."""
    before = feed_ids(admin)
    writer = Writer(admin, before)
    shown = collections.Counter()
    reading = 0.0
    lowest = 0
    rank = {row_id: position for position, row_id in enumerate(before)}
    pages = iter(pages)
    for page in range(1, WALK_PAGES + 1):
        start = time.perf_counter()
        rows = next(pages)
        reading += time.perf_counter() - start
        shown.update(row[0] for row in rows)
        lowest = max([lowest] + [rank[row[0]] for row in rows if row[0] in rank])
        writer.after_page(page)
        if page % 50 == 0:
            progress(f"Walking {WALK_PAGES:,} pages {name}: page {page:,}")
    stood = [row_id for row_id in before[: lowest + 1] if row_id not in writer.gone]
    check(set(stood) <= existing(admin, stood), "the writer deleted other rows than it says")
    lost = sum(1 for row_id in stood if row_id not in shown)
    again = shown.total() - len(shown)
    writer.undo()
    check(feed_ids(admin) == before, "the feed is not as it was before the walk")
    done(f"Walked {WALK_PAGES:,} pages {name} while a writer worked")
    return shown.total(), again, lost, reading


def existing(conn, ids):
    return {row[0] for row in conn.execute("SELECT id FROM posts WHERE id = ANY (%s)", (ids,))}


# ---- what is printed ----


class Failure(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Failure(what)


started = time.monotonic()


def progress(text):
    if sys.stdout.isatty():
        print(f"\r\033[K  {text} ...", end="", flush=True)


def done(text):
    clear = "\r\033[K" if sys.stdout.isatty() else ""
    print(f"{clear}  [{time.monotonic() - started:5.1f} s] {text}", flush=True)


def print_statement():
    print("\nThe statement. Directly it is sent without the comment.\n")
    for line in (SQL.replace("%s", "$1") + TAG.replace("%s", "$2")).splitlines():
        print("    " + line)
    print()


def print_depths(lines):
    print(f"\nPages of {PAGE_ROWS} rows: the median time that the client waits, the 8 kB blocks that are touched.\n")
    print("                 OFFSET, direct             by cursor, through pgseek")
    print("       page        time     buffers             time     buffers    of which for the guard")
    for page, offset_ms, offset_buffers, seek_ms, seek_buffers, guard_buffers in lines:
        offset = f"{offset_ms:7.2f} ms   {offset_buffers:9,}"
        print(f"   {page:8,}  {offset}       {seek_ms:7.2f} ms   {seek_buffers:9,}    {guard_buffers:9,}")
    print("\n   The guard is pgseek's check, on each page, that the table and its indexes are as planned.")


def print_walks(walks):
    print(
        f"\nThe first {WALK_PAGES:,} pages, one after the other. After each page a writer inserts"
        f" {WRITER_ROWS} posts at the\nhead or deletes {WRITER_ROWS} that were read before, in turns.\n"
    )
    print("                              rows shown    shown again    lost    reading took")
    for name, (shown, again, lost, seconds) in walks:
        print(f"   {name:25s}    {shown:9,}      {again:9,}  {lost:6,}       {seconds:7.2f} s")
    print()


# ---- from start to end ----


def connect(port, user, dbname="feed"):
    return psycopg.connect(host="127.0.0.1", port=port, user=user, dbname=dbname, autocommit=True)


def load(server_port):
    progress(f"Loading {ROWS:,} posts")
    with connect(server_port, "postgres", "postgres") as conn:
        conn.execute("CREATE DATABASE feed")
        password = conn.info.password.replace("'", "''")
        conn.execute(f"CREATE ROLE demo LOGIN PASSWORD '{password}'")
    admin = connect(server_port, "postgres")
    admin.execute("CREATE EXTENSION pg_stat_statements")
    admin.execute(LOAD)
    admin.execute("VACUUM ANALYZE posts")
    done(f"Loaded {ROWS:,} posts; the index is on (created_at, id)")
    return admin


def run(ports):
    admin = load(ports.server_port)
    direct = connect(ports.server_port, "demo")
    proxied = connect(ports.proxy_port, "demo")
    print_statement()
    depths = compare_depths(admin, direct, proxied)
    walks = [
        ("OFFSET, direct", walk("by OFFSET, direct", admin, offset_walk(direct))),
        ("by cursor, through pgseek", walk("by cursor, through pgseek", admin, cursor_walk(proxied))),
    ]
    print_depths(depths)
    print_walks(walks)
    _, again, lost, _ = walks[1][1]
    check(again == 0 and lost == 0, "pgseek repeated or lost rows")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server-port", type=int, required=True)
    parser.add_argument("--proxy-port", type=int, required=True)
    try:
        run(parser.parse_args())
    except (Failure, psycopg.Error) as error:
        print(f"\ndemo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
