// Logins.java - logs in by pgjdbc and walks pages as it is told: one attempt a line in, its outcome a line out, both
// form-encoded. clients.py writes the attempts.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

public class Logins {
    static Map<String, String> decode(String line) {
        Map<String, String> fields = new HashMap<>();
        for (String field : line.split("&")) {
            String[] parts = field.split("=", 2);
            fields.put(parts[0], URLDecoder.decode(parts[1], StandardCharsets.UTF_8));
        }
        return fields;
    }

    static String encode(String name, String value) {
        return name + "=" + URLEncoder.encode(value == null ? "" : value, StandardCharsets.UTF_8);
    }

    static Properties properties(Map<String, String> attempt) {
        Properties properties = new Properties();
        properties.setProperty("user", attempt.get("user"));
        properties.setProperty("password", attempt.get("password"));
        properties.setProperty("gssEncMode", "disable");
        properties.setProperty("connectTimeout", "20");
        properties.setProperty("loginTimeout", "20");
        boolean isTls = attempt.get("leg").equals("tls");
        properties.setProperty("sslmode", isTls ? attempt.get("sslmode") : "disable");
        if (isTls && attempt.containsKey("ca"))
            properties.setProperty("sslrootcert", attempt.get("ca"));
        if (isTls && attempt.containsKey("pkcs12")) {
            properties.setProperty("sslkey", attempt.get("pkcs12"));
            properties.setProperty("sslpassword", attempt.get("passphrase"));
        }
        return properties;
    }

    /** The pages of attempt.sql, each with the cursor of the one before; only the first where there is no pgseek. */
    static String walk(Map<String, String> attempt) throws SQLException {
        String url = "jdbc:postgresql://" + attempt.get("host") + ":" + attempt.get("port") + "/" + attempt.get("database");
        StringBuilder ids = new StringBuilder();
        try (Connection connection = DriverManager.getConnection(url, properties(attempt)); Statement statement = connection.createStatement()) {
            String cursor = "";
            do {
                try (ResultSet rows = statement.executeQuery(attempt.get("sql").replace("<cursor>", cursor))) {
                    while (rows.next())
                        ids.append(ids.length() > 0 ? " " : "").append(rows.getLong(1));
                }
                if (!attempt.get("pages").equals("yes"))
                    break;
                try (ResultSet rows = statement.executeQuery("SHOW pgseek.next_cursor")) {
                    rows.next();
                    cursor = rows.getString(1);
                }
            } while (!cursor.isEmpty());
        }
        return ids.toString();
    }

    static String answer(String line) {
        try {
            return encode("ids", walk(decode(line)));
        } catch (SQLException error) {
            StringBuilder text = new StringBuilder();
            for (Throwable cause = error; cause != null; cause = cause.getCause())
                text.append(cause.getMessage()).append("; ");
            return encode("sqlstate", error.getSQLState()) + "&" + encode("text", text.toString());
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null;) {
            System.out.println(answer(line));
            System.out.flush();
        }
    }
}
