// node_pg.js - walks by every channel that node-postgres can use; prints a JSON object of ids by channel.
'use strict';

const {Client} = require('pg');
const {FEED, SIZE, SELECT, walkAll, tag, literal, fromColumns} = require('./walks');

async function main() {
    const client = new Client({host: process.env.PGHOST, port: Number(process.env.PGPORT), user: process.env.PGUSER, database: process.env.PGDATABASE});
    await client.connect();
    const status = {};
    let notice = null;
    client.connection.on('parameterStatus', (message) => {
        status[message.parameterName] = message.parameterValue;
    });
    client.on('notice', (message) => {
        notice = JSON.parse(message.detail);
    });
    const rows = async (query, values) => (await client.query(query, values)).rows;
    const bound = SELECT + ' /* pgseek cursor=$3 */';
    const readStatus = () => status['pgseek.next_cursor'];
    const show = async () => (await rows('SHOW pgseek.next_cursor'))[0]['pgseek.next_cursor'];
    const current = async () => (await rows("SELECT current_setting('pgseek.next_cursor') AS c"))[0].c;
    const inTransaction = (ask) => async (cursor) => {
        await client.query('BEGIN');
        const page = await ask(cursor);
        await client.query('COMMIT');
        return page;
    };
    const byParameter = (cursor) => rows(bound, [FEED, SIZE, cursor]);
    const byName = (cursor) => rows({name: 'page', text: bound, values: [FEED, SIZE, cursor]});
    const byComment = (cursor) => rows(literal(cursor));
    const withVariable = (set) => async (cursor) => {
        if (cursor)
            await set(cursor);
        return rows(SELECT + ' /* pgseek */', [FEED, SIZE]);
    };
    const setConfig = (cursor) => rows("SELECT set_config('pgseek.cursor', $1, false)", [cursor]);
    const local = async (cursor) => {
        await client.query('BEGIN');
        if (cursor)
            await rows("SELECT set_config('pgseek.cursor', $1, true)", [cursor]);
        const page = await rows({name: 'local', text: SELECT + ' /* pgseek */', values: [FEED, SIZE]});
        await client.query('COMMIT');
        return page;
    };
    const queued = async (cursor) => {
        const [, page] = await Promise.all([setConfig(cursor || ''), rows(SELECT + ' /* pgseek */', [FEED, SIZE])]);
        return page;
    };

    const result = await walkAll({
        'parameter, status': {ask: byParameter, read: readStatus},
        'parameter, prepared, show': {ask: byName, read: show},
        'parameter, in a transaction': {ask: inTransaction(byParameter), read: readStatus},
        'parameter, prepared, in a transaction': {ask: inTransaction(byName), read: readStatus},
        'comment, status': {ask: byComment, read: readStatus},
        'comment, in a transaction': {ask: inTransaction(byComment), read: current},
        'SET, show': {ask: withVariable((cursor) => client.query(`SET pgseek.cursor = '${cursor}'`)), read: show},
        'set_config, current_setting': {ask: withVariable(setConfig), read: current},
        'set_config local': {ask: local, read: readStatus},
        'queued': {ask: queued, read: readStatus},
        'notice': {ask: (cursor) => rows(literal(cursor, 'deliver=notice')), read: () => notice['pgseek.next_cursor'] || notice.next_cursor},
        'columns': {ask: (cursor) => rows(literal(cursor, 'deliver=columns')), read: fromColumns},
        'parameter, columns': {ask: (cursor) => rows(SELECT + ' /* pgseek deliver=columns cursor=$3 */', [FEED, SIZE, cursor]), read: fromColumns},
    }, () => client.query('ROLLBACK'));
    await client.end();
    console.log(JSON.stringify(result));
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
