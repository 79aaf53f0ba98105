// Pgjdbc.java - walks by every channel that pgjdbc can use, in all its query modes; prints lines of "mode, channel: ids".
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.postgresql.PGConnection;

public class Pgjdbc {
    static final String SELECT = "SELECT id, body FROM driver_rows WHERE feed = ? ";
    static final String ORDER = " ORDER BY at DESC, id DESC LIMIT ? ";
    static final int FEED = 1, SIZE = 7;

    static Connection connection;

    /** A page: its ids, and the next cursor where the channel reads it from the rows or the warnings. */
    static class Page {
        final List<Long> ids = new ArrayList<>();
        String next;
    }

    interface Ask {
        Page page(String cursor) throws SQLException;
    }

    interface Read {
        String cursor(Page page) throws SQLException;
    }

    static Page take(ResultSet rows) throws SQLException {
        Page page = new Page();
        boolean columns = rows.getMetaData().getColumnCount() > 2;
        while (rows.next()) {
            page.ids.add(rows.getLong(1));
            if (columns)
                page.next = rows.getBoolean("pgseek_has_more") ? rows.getString("pgseek_cursor") : "";
        }
        return page;
    }

    static Page bound(String sql, String cursor, int fetchSize) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setFetchSize(fetchSize);
            statement.setInt(1, FEED);
            int next = 2;
            if (sql.contains("coalesce"))
                statement.setString(next++, cursor);
            statement.setInt(next, SIZE);
            try (ResultSet rows = statement.executeQuery()) {
                Page page = take(rows);
                noticed(page, statement.getWarnings());
                return page;
            }
        }
    }

    static void noticed(Page page, SQLWarning warning) {
        Pattern pattern = Pattern.compile("next_cursor\"\\s*:\\s*\"([^\"]*)\"");
        for (; warning != null; warning = warning.getNextWarning()) {
            if (!(warning instanceof org.postgresql.util.PSQLWarning))
                continue;
            Matcher matcher = pattern.matcher(String.valueOf(((org.postgresql.util.PSQLWarning) warning).getServerErrorMessage().getDetail()));
            if (matcher.find())
                page.next = matcher.group(1);
        }
    }

    static Page inTransaction(Ask ask, String cursor) throws SQLException {
        connection.setAutoCommit(false);
        try {
            Page page = ask.page(cursor);
            connection.commit();
            return page;
        } finally {
            connection.setAutoCommit(true);
        }
    }

    static String tag(String cursor, String more) {
        return "/* pgseek " + (cursor == null ? "" : "cursor=" + cursor) + " " + more + " */";
    }

    static Page byComment(String cursor, String more) throws SQLException {
        return bound(SELECT + ORDER + tag(cursor, more), cursor, 0);
    }

    static Page byParameter(String cursor, int fetchSize) throws SQLException {
        return bound(SELECT + "AND coalesce(?, '') IS NOT NULL" + ORDER + "/* pgseek cursor=$2 */", cursor, fetchSize);
    }

    static Page afterSet(String cursor) throws SQLException {
        if (cursor != null)
            try (Statement statement = connection.createStatement()) {
                statement.execute("SET pgseek.cursor = '" + cursor + "'");
            }
        return bound(SELECT + ORDER + "/* pgseek */", cursor, 0);
    }

    static Page afterSetConfig(String cursor, boolean local) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT set_config('pgseek.cursor', ?, ?)")) {
            statement.setString(1, cursor == null ? "" : cursor);
            statement.setBoolean(2, local);
            statement.executeQuery().close();
        }
        return bound(SELECT + ORDER + "/* pgseek */", cursor, 0);
    }

    static String status(Page page) throws SQLException {
        return connection.unwrap(PGConnection.class).getParameterStatus("pgseek.next_cursor");
    }

    static String asked(String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getString(1);
        }
    }

    static void walk(String name, Ask ask, Read read) {
        List<Long> ids = new ArrayList<>();
        try {
            String cursor = null;
            for (int pages = 0; pages < 100; pages++) {
                Page page = ask.page(cursor);
                ids.addAll(page.ids);
                cursor = read.cursor(page);
                if (cursor == null || cursor.isEmpty())
                    break;
            }
            System.out.println(name + ": " + ids);
        } catch (SQLException error) {
            System.out.println(name + ": " + error.getSQLState() + " " + error.getMessage().replace('\n', ' '));
        }
    }

    public static void main(String[] args) throws Exception {
        for (String mode : new String[] {"extended", "extendedForPrepared", "extendedCacheEverything", "simple"}) {
            String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE")
                + "?user=" + System.getenv("PGUSER") + "&sslmode=disable&gssEncMode=disable&prepareThreshold=2&preferQueryMode=" + mode;
            connection = DriverManager.getConnection(url);
            walk(mode + ", comment, status", cursor -> byComment(cursor, ""), Pgjdbc::status);
            walk(mode + ", comment, in a transaction", cursor -> inTransaction(c -> byComment(c, ""), cursor), Pgjdbc::status);
            walk(mode + ", SET, SHOW", Pgjdbc::afterSet, page -> asked("SHOW pgseek.next_cursor"));
            walk(mode + ", set_config, current_setting", cursor -> afterSetConfig(cursor, false),
                 page -> asked("SELECT current_setting('pgseek.next_cursor')"));
            walk(mode + ", set_config local", cursor -> inTransaction(c -> afterSetConfig(c, true), cursor), Pgjdbc::status);
            walk(mode + ", notice", cursor -> byComment(cursor, "deliver=notice"), page -> page.next);
            walk(mode + ", columns", cursor -> byComment(cursor, "deliver=columns"), page -> page.next);
            if (!mode.equals("simple")) {
                walk(mode + ", parameter, status", cursor -> byParameter(cursor, 0), Pgjdbc::status);
                walk(mode + ", parameter, in portions", cursor -> inTransaction(c -> byParameter(c, 3), cursor), Pgjdbc::status);
            } else {
                walk(mode + ", parameter is refused", cursor -> byParameter(cursor, 0), Pgjdbc::status);
            }
            connection.close();
        }
    }
}
