// logins.js - logs in and walks pages as it is told: one attempt a line in, its outcome a line out, both form-encoded.
// clients.py writes the attempts. Usage: node logins.js <pg|postgres>
'use strict';

const fs = require('fs');
const readline = require('readline');

const DRIVERS = {pg: nodePostgres, postgres: postgresJs};

function tlsOptions(attempt) {
    if (attempt.leg !== 'tls' && attempt.leg !== 'direct')
        return false;
    const read = (name) => (attempt[name] ? fs.readFileSync(attempt[name]) : undefined);
    return {ca: read('ca'), cert: read('cert'), key: read('key')};
}

async function nodePostgres(attempt, walk) {
    const {Client} = require('pg');
    const client = new Client({
        host: attempt.host,
        port: Number(attempt.port),
        user: attempt.user,
        password: attempt.password,
        database: attempt.database,
        ssl: tlsOptions(attempt),
        sslnegotiation: attempt.leg === 'direct' ? 'direct' : 'postgres',
        enableChannelBinding: attempt.binding !== 'disable',
        connectionTimeoutMillis: 20000,
    });
    client.on('error', () => {});
    await client.connect(); // a client that could not connect may wait for its end for ever
    try {
        return await walk(async (sql) => (await client.query({text: sql, rowMode: 'array'})).rows);
    } finally {
        await client.end().catch(() => {});
    }
}

async function postgresJs(attempt, walk) {
    const sql = require('postgres')({
        host: attempt.host,
        port: Number(attempt.port),
        user: attempt.user,
        password: attempt.password,
        database: attempt.database,
        ssl: tlsOptions(attempt),
        sslnegotiation: attempt.leg === 'direct' ? 'direct' : null,
        max: 1,
        fetch_types: false,
        onnotice: () => {},
        connect_timeout: 20,
        idle_timeout: 0,
    });
    try {
        return await walk(async (text) => (await sql.unsafe(text).values()).map((row) => [...row]));
    } finally {
        await sql.end({timeout: 1}).catch(() => {});
    }
}

// The pages of attempt.sql, each with the cursor of the one before; only the first where there is no pgseek.
function walker(attempt) {
    return async (run) => {
        const ids = [];
        for (let cursor = ''; ;) {
            const rows = await run(attempt.sql.replace('<cursor>', cursor));
            ids.push(...rows.map((row) => row[0]));
            if (attempt.pages !== 'yes')
                return ids;
            cursor = (await run('SHOW pgseek.next_cursor'))[0][0];
            if (!cursor)
                return ids;
        }
    };
}

async function answer(line) {
    const attempt = Object.fromEntries(new URLSearchParams(line));
    try {
        const ids = await DRIVERS[process.argv[2]](attempt, walker(attempt));
        return new URLSearchParams({ids: ids.join(' ')});
    } catch (error) {
        const code = /^[0-9A-Z]{5}$/.test(error.code || '') ? error.code : '';
        return new URLSearchParams({sqlstate: code, text: `${error.code || ''} ${error.message} ${error.detail || ''} ${error.hint || ''}`});
    }
}

async function main() {
    for await (const line of readline.createInterface({input: process.stdin}))
        process.stdout.write(`${await answer(line)}\n`);
}

main().then(() => process.exit(0));
