// One walk through a guide with an official TypeScript client: reads the task from standard input, prints what the client
// saw as one line of JSON. It judges nothing; the Python test does.
//
//   node client.mjs sdk-1 | client-2 [legacy | auto | 2026-07-28]   < task.json
//
// Task: {command, args, cwd, env, guide, context, outputs: {stepId: output}, rejected: {workflowId, stepId, output}}

import { text } from 'node:stream/consumers';

const [which, mode = 'legacy'] = process.argv.slice(2);
const task = JSON.parse(await text(process.stdin));
const identity = { name: 'handrail-test', version: '1.0.0' };

async function sdk1() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  return { client: new Client(identity), Transport: StdioClientTransport };
}

async function client2() {
  const { Client } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const negotiation = mode === 'legacy' || mode === 'auto' ? mode : { pin: mode };
  const client = new Client(identity, { versionNegotiation: { mode: negotiation } });
  return { client, Transport: StdioClientTransport };
}

const { client, Transport } = await (which === 'sdk-1' ? sdk1() : client2());
const transportErrors = [];
client.onerror = (error) => transportErrors.push(String(error));
await client.connect(new Transport({ command: task.command, args: task.args, cwd: task.cwd, env: task.env }));

const call = async (name, args) => (await client.callTool({ name, arguments: args })).structuredContent;

async function walk() {
  const completed = [];
  const verdicts = [];
  for (;;) {
    const next = await call('workflow_next', {
      workflowId: task.guide,
      completedSteps: completed,
      context: task.context,
    });
    if (next.isComplete || completed.includes(next.step.id)) {
      return { completed, verdicts, last: next };
    }
    const output = task.outputs[next.step.id];
    const given = { workflowId: task.guide, stepId: next.step.id, output, context: task.context };
    verdicts.push(await call('workflow_validate', given));
    completed.push(next.step.id);
  }
}

async function refusal() {
  try {
    return { result: await client.callTool({ name: 'workflow_get', arguments: { id: 'no-such-guide' } }) };
  } catch (error) {
    return { error: { code: error.code, data: error.data } };
  }
}

// JSON Schema means JavaScript's regular expressions; a pattern of another dialect is refused by the hosts that compile it.
function foreignPatterns(schema) {
  if (schema === null || typeof schema !== 'object') return [];
  const own = typeof schema.pattern === 'string' && !readable(schema.pattern) ? [schema.pattern] : [];
  return own.concat(...Object.values(schema).map(foreignPatterns));
}

function readable(pattern) {
  try {
    return Boolean(new RegExp(pattern, 'u'));
  } catch {
    return false;
  }
}

const { tools } = await client.listTools();
const seen = {
  tools: tools.map((tool) => tool.name),
  foreignPatterns: tools.flatMap(foreignPatterns),
  server: client.getServerVersion()?.name,
  guide: (await call('workflow_get', { id: task.guide })).id,
  rejected: await call('workflow_validate', task.rejected),
  walk: await walk(),
  refusal: await refusal(),
  protocolVersion: client.getNegotiatedProtocolVersion?.(),
  transportErrors,
};
await client.close();
console.log(JSON.stringify(seen));
