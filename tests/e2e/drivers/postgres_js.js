// postgres_js.js - walks by every channel that postgres.js can use; prints a JSON object of ids by channel.
'use strict';

const postgres = require('postgres');
const {FEED, SIZE, SELECT, walkAll, literal, fromColumns} = require('./walks');

async function main() {
    const status = {};
    let notice = null;
    const connect = (options) => postgres({
        host: process.env.PGHOST, port: Number(process.env.PGPORT), user: process.env.PGUSER, database: process.env.PGDATABASE, max: 1,
        onparameter: (name, value) => {
            status[name] = value;
        },
        onnotice: (message) => {
            notice = JSON.parse(message.detail);
        },
        ...options,
    });
    const sql = connect({});
    const unprepared = connect({prepare: false});
    const readStatus = () => status['pgseek.next_cursor'];
    const show = async () => (await sql`SHOW pgseek.next_cursor`)[0]['pgseek.next_cursor'];
    const template = (db) => (cursor) =>
        db`SELECT id, body FROM driver_rows WHERE feed = ${FEED} ORDER BY at DESC, id DESC LIMIT ${SIZE} /* pgseek cursor=${cursor} */`;
    const plain = (db) => db`SELECT id, body FROM driver_rows WHERE feed = ${FEED} ORDER BY at DESC, id DESC LIMIT ${SIZE} /* pgseek */`;
    const setConfig = (db, cursor, local) => db`SELECT set_config('pgseek.cursor', ${cursor || ''}, ${local})`;
    const portions = async (cursor) => {
        const all = [];
        for await (const rows of template(sql)(cursor).cursor(3))
            all.push(...rows);
        return all;
    };

    const result = await walkAll({
        'parameter, prepared, status': {ask: template(sql), read: readStatus},
        'parameter, unprepared, status': {ask: template(unprepared), read: readStatus},
        'parameter, show': {ask: template(sql), read: show},
        'parameter, in a transaction': {ask: (cursor) => sql.begin((tx) => template(tx)(cursor)), read: readStatus},
        'parameter, in portions': {ask: portions, read: readStatus},
        'unsafe, parameter': {ask: (cursor) => sql.unsafe(SELECT + ' /* pgseek cursor=$3 */', [FEED, SIZE, cursor]), read: readStatus},
        'unsafe, parameter, prepared': {ask: (cursor) => sql.unsafe(SELECT + ' /* pgseek cursor=$3 */', [FEED, SIZE, cursor], {prepare: true}), read: readStatus},
        'comment, simple': {ask: (cursor) => sql.unsafe(literal(cursor)).simple(), read: readStatus},
        'comment': {ask: (cursor) => sql.unsafe(literal(cursor)), read: readStatus},
        'set_config, pipelined': {ask: async (cursor) => (await Promise.all([setConfig(sql, cursor, false), plain(sql)]))[1], read: readStatus},
        'set_config local': {ask: (cursor) => sql.begin(async (tx) => (await Promise.all([setConfig(tx, cursor, true), plain(tx)]))[1]), read: readStatus},
        'SET': {ask: async (cursor) => {
            await sql.unsafe(`SET pgseek.cursor = '${cursor || ''}'`);
            return plain(sql);
        }, read: show},
        'notice': {ask: (cursor) => sql.unsafe(literal(cursor, 'deliver=notice')), read: () => notice['pgseek.next_cursor'] || notice.next_cursor},
        'columns': {ask: (cursor) => sql.unsafe(SELECT + ' /* pgseek deliver=columns cursor=$3 */', [FEED, SIZE, cursor]), read: fromColumns},
    }, () => sql`ROLLBACK`);
    await sql.end();
    await unprepared.end();
    console.log(JSON.stringify(result));
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
