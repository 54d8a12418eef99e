const payload = Buffer.alloc(Number(process.env.BYTES));
module.exports = { sendChunk: (context, events, done) => context.ws.send(payload, () => done()) };
