import { compileSchema } from 'platform/json-schema/schema.ts';
import type { Reply } from '../support/request.ts';
import { REPOSITORY } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';
import { startFleet, type Fleet } from './fleet.ts';
import { layOutPrevious, PREVIOUS } from './release.ts';
import { STORED_TYPES, type StoredType } from './stored-types.ts';

const TYPES = '/api/memory/types';
const OBJECTS = '/api/memory/objects';

/** An agent whose argumentsSchema is that of the type. */
const agentOf = (n: number): string => `agent-${n}`;

interface Stored extends StoredType {
  id: string;
  /** Paths of all that is stored, and what the release before answered. */
  before: Map<string, Reply>;
}

describe(`what release ${PREVIOUS} has stored in memory types of every kind that it accepts`, () => {
  const previous = layOutPrevious();
  let fleet: Fleet;
  let tenant: Tenant;
  const stored = new Map<string, Stored>();
  beforeAll(async () => {
    fleet = await startFleet(previous.root);
    const agents = STORED_TYPES.map(({ jsonSchema }, n) =>
      expressionAgent(agentOf(n), '"done"', { argumentsSchema: jsonSchema }),
    );
    tenant = await fleet.tenant({ credits: 1_000, agents });
    for (const [n, type] of STORED_TYPES.entries()) stored.set(type.what, await store(type, `type-${n}`));
    for (const name of ['memory', 'agents', 'gateway'] as const) {
      await fleet.drain(name, 0);
      await fleet.start(name, 0, REPOSITORY);
    }
  });
  afterAll(async () => {
    await fleet.stop();
    previous.remove();
  });

  async function store(type: StoredType, name: string): Promise<Stored> {
    const created = await send(201, 'POST', TYPES, { type: name, jsonSchema: type.jsonSchema });
    const paths = [`${TYPES}/${created.body.id}`, `${OBJECTS}?type=${name}&pageSize=100`];
    const contents = [...type.valid, ...(type.doubtful ?? [])];
    for (const [n, content] of contents.entries()) {
      const { body } = await send(201, 'POST', OBJECTS, `{"type":"${name}","key":"${n}","content":${content}}`);
      paths.push(`${OBJECTS}/${body.id}`);
    }
    if (type.wrong !== undefined) await refused(name, type.wrong);
    const before = new Map<string, Reply>();
    for (const path of paths) before.set(path, await send(200, 'GET', path));
    return { ...type, id: created.body.id, before };
  }

  async function send(status: number, method: string, path: string, body?: unknown): Promise<Reply> {
    const reply = await tenant.request(method, path, body);
    const asked = { method, path, body, reply: reply.text };
    expect({ ...asked, status: reply.status }).toEqual({ ...asked, status });
    return reply;
  }
  async function refused(type: string, content: string): Promise<void> {
    const { body } = await send(400, 'POST', OBJECTS, `{"type":"${type}","key":"wrong","content":${content}}`);
    expect(body.code).toBe('invalid_content');
  }
  const objectsOf = ({ before }: Stored): Reply[] =>
    [...before].filter(([path]) => path.startsWith(`${OBJECTS}/`)).map(([, reply]) => reply);

  describe.each(STORED_TYPES.map(({ what }) => what))('%s', (what) => {
    const type = (): Stored => stored.get(what)!;

    it('is read as it was, also in lists', async () => {
      for (const [path, { text }] of type().before)
        expect({ path, text: (await send(200, 'GET', path)).text }).toEqual({ path, text });
    });

    it('can be written: contents are judged by the rules of this release', async () => {
      const { jsonSchema, valid, wrong } = type();
      const { validate } = compileSchema(JSON.stringify(jsonSchema));
      const { type: name } = (await send(200, 'GET', `${TYPES}/${type().id}`)).body;
      for (const [n, { body, text }] of objectsOf(type()).entries()) {
        const isValid = validate(body.content).length === 0;
        if (n < valid.length) expect({ text, isValid }).toEqual({ text, isValid: true });
        // the text, so that numbers are sent as they were
        const content = [...valid, ...(type().doubtful ?? [])][n];
        const reply = await send(isValid ? 200 : 400, 'PATCH', `${OBJECTS}/${body.id}`, `{"content":${content}}`);
        if (!isValid) expect(reply.body.code).toBe('invalid_content');
      }
      await send(201, 'POST', OBJECTS, `{"type":"${name}","key":"new","content":${valid[0]}}`);
      if (wrong !== undefined) await refused(name, wrong);
    });

    it('is the argumentsSchema of an agent, which runs', async () => {
      const { jsonSchema, valid, doubtful = [], wrong } = type();
      const { validate } = compileSchema(JSON.stringify(jsonSchema));
      const agent = agentOf(STORED_TYPES.findIndex((one) => one.what === what));
      for (const args of [...valid, ...doubtful, ...(wrong === undefined ? [] : [wrong])]) {
        const isValid = validate(JSON.parse(args)).length === 0;
        await send(isValid ? 200 : 400, 'POST', '/api/agent/run', `{"agentName":"${agent}","args":${args}}`);
      }
    });

    it('is taken back as it was read, and a dry run tells which objects break it by now', async () => {
      const { id, doubtful = [], before } = type();
      const { text, body } = before.get(`${TYPES}/${id}`)!;
      expect((await send(200, 'PUT', `${TYPES}/${id}`, text)).body.version).toBe(body.version);
      const report = (await send(200, 'PUT', `${TYPES}/${id}?dryRun=true`, { jsonSchema: body.jsonSchema })).body;
      expect(report).toMatchObject({ compatible: doubtful.length === 0, count: doubtful.length });
    });

    it('can be changed, and its objects stay', async () => {
      const { id } = type();
      const { body } = await send(200, 'PUT', `${TYPES}/${id}`, { jsonSchema: { type: 'object' }, description: 'new' });
      expect(body).toMatchObject({ version: 2, jsonSchema: { type: 'object' } });
      for (const { body: object } of objectsOf(type()))
        expect((await send(200, 'GET', `${OBJECTS}/${object.id}`)).body.content).toEqual(object.content);
      await send(200, 'DELETE', `${TYPES}/${id}?cascade=true`);
    });
  });

  it('is joined by types that only this release takes: after a way back they are read, but not written', async () => {
    const jsonSchema = { $schema: 'http://json-schema.org/draft-04/schema#', properties: { n: { maximum: 1 } } };
    const { body: type } = await send(201, 'POST', TYPES, { type: 'later', jsonSchema });
    const { body: object } = await send(201, 'POST', OBJECTS, { type: 'later', key: 'k', content: { n: 1 } });
    await fleet.drain('memory', 0);
    await fleet.start('memory', 0, previous.root);
    expect((await send(200, 'GET', `${TYPES}/${type.id}`)).body.jsonSchema).toEqual(jsonSchema);
    expect((await send(200, 'GET', `${OBJECTS}/${object.id}`)).body).toEqual(object);
    // which the document of the API cannot know
    const written = await fetch(`${fleet.baseUrls[0]}${OBJECTS}/${object.id}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' },
      body: '{"content":{"n":0}}',
    });
    expect({ status: written.status, ...((await written.json()) as object) }).toMatchObject({
      status: 400,
      code: 'invalid_schema',
    });
    await send(200, 'PUT', `${TYPES}/${type.id}`, { description: 'can be described' });
    await send(200, 'DELETE', `${OBJECTS}/${object.id}`);
  });
});
