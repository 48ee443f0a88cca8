// A model server on loopback that speaks OpenAI's protocol.

import { createServer } from 'node:http';

const DECISION = '{"reason": "They asked me.", "decision": "YES", "importance": 7, "selected": true, "closing": "none"}';

// It wants `key`, has the models `names`, answers decisions with `decision` and statements with `statement`; without one it
// never answers, and `abandoned` ends once a caller gave up.
export async function startModel({ key = null, names = ['large', 'small'], decision = DECISION, statement }) {
  const keys = new Set(); // that were sent to it
  const waiting = []; // what is called when a caller gives up
  let gaveUp = 0;
  const server = createServer((request, response) => {
    if (request.headers.authorization) keys.add(request.headers.authorization);
    const answer = (status, body) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    let text = '';
    request.on('data', piece => {
      text += piece;
    });
    request.on('end', () => {
      if (key && request.headers.authorization !== `Bearer ${key}`) return answer(401, { error: { message: 'Incorrect API key' } });
      if (request.method === 'GET') return answer(200, { data: names.map(id => ({ id })) });
      const content = text.includes('decision') ? decision : statement;
      if (content === undefined) {
        return response.on('close', () => {
          gaveUp += 1;
          for (const done of waiting.splice(0)) done();
        });
      }
      return answer(200, { choices: [{ message: { role: 'assistant', content }, finish_reason: 'stop' }], usage: { prompt_tokens: 100, completion_tokens: 10 } });
    });
  });
  await new Promise(done => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${server.address().port}/v1`, keys, abandoned: () => (gaveUp ? Promise.resolve() : new Promise(done => waiting.push(done))), stop: () => new Promise(done => server.close(done).closeAllConnections()) };
}
