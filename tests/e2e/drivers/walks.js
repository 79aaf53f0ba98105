// walks.js - what both Node.js drivers walk: the statements, and the loop from the first page to the last.
//
// It knows pgseek's tag and must not know a driver. A channel is {ask, read}: ask(cursor) gives the rows of a page,
// read(rows) the next cursor.
'use strict';

const FEED = 1;
const SIZE = 7;
const SELECT = 'SELECT id, body FROM driver_rows WHERE feed = $1 ORDER BY at DESC, id DESC LIMIT $2';

async function walk(channel) {
    const ids = [];
    let cursor = null;
    for (let page = 0; page < 100; page++) {
        const rows = await channel.ask(cursor);
        ids.push(...rows.map((row) => Number(row.id)));
        cursor = await channel.read(rows);
        if (!cursor)
            return ids;
    }
    throw new Error('the walk does not end');
}

// A channel that fails says so in its place; recover() brings the connection back for the next.
async function walkAll(channels, recover) {
    const result = {};
    for (const [name, channel] of Object.entries(channels)) {
        try {
            result[name] = await walk(channel);
        } catch (error) {
            result[name] = String(error.code || '') + ' ' + String(error.message);
            await recover();
        }
    }
    return result;
}

const tag = (cursor, more = '') => `/* pgseek ${cursor ? `cursor=${cursor}` : ''} ${more} */`;
const literal = (cursor, more) => SELECT.replace('$1', FEED).replace('$2', SIZE) + tag(cursor, more);
const fromColumns = (rows) => (rows.length && rows[rows.length - 1].pgseek_has_more ? rows[rows.length - 1].pgseek_cursor : null);

module.exports = {FEED, SIZE, SELECT, walkAll, tag, literal, fromColumns};
