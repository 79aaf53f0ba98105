// PgjdbcCorpus.java - walks statements to their end. Each line of input is base64: what the session runs first, and the
// statement; each line of output is the rows, their values base64 and joined by commas, separated by blanks.
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Base64;
import java.util.Scanner;
import org.postgresql.PGConnection;

public class PgjdbcCorpus {
    static String decoded(String text) {
        return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }

    static String encoded(String value) {
        return value == null ? "NULL" : Base64.getEncoder().encodeToString(value.getBytes(StandardCharsets.UTF_8));
    }

    static void setCursor(Connection connection, String cursor) throws SQLException {
        try (PreparedStatement set = connection.prepareStatement("SELECT set_config('pgseek.cursor', ?, false)")) {
            set.setString(1, cursor);
            set.executeQuery().close();
        }
    }

    static void page(Connection connection, String sql, StringBuilder out) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql); ResultSet rows = statement.executeQuery()) {
            int columns = rows.getMetaData().getColumnCount();
            while (rows.next()) {
                for (int i = 1; i <= columns; i++)
                    out.append(encoded(rows.getString(i))).append(i < columns ? "," : " ");
            }
        }
    }

    static String walk(Connection connection, String sql) throws SQLException {
        StringBuilder out = new StringBuilder();
        String cursor = "";
        do {
            if (!cursor.isEmpty())
                setCursor(connection, cursor);
            page(connection, sql, out);
            String next = connection.unwrap(PGConnection.class).getParameterStatus("pgseek.next_cursor");
            cursor = next == null ? "" : next;
        } while (!cursor.isEmpty());
        return out.toString();
    }

    public static void main(String[] args) throws SQLException {
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE")
            + "?user=" + System.getenv("PGUSER") + "&sslmode=disable&gssEncMode=disable";
        Scanner input = new Scanner(System.in);
        while (input.hasNextLine()) {
            String[] line = input.nextLine().split(" ", -1);
            try (Connection connection = DriverManager.getConnection(url); Statement statement = connection.createStatement()) {
                if (!line[0].isEmpty())
                    statement.execute(decoded(line[0]));
                System.out.println(walk(connection, decoded(line[1])));
            }
        }
    }
}
