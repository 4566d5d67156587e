import { fieldOptions, hasPresence, httpStatuses, restMethods } from '../../src/contract/rest-methods.ts';
import type { Enum, Field } from 'protobufjs';

const method = (name: string) => {
  const found = restMethods().find(({ path }) => path.endsWith(`/${name}`));
  if (!found) throw new Error(`${name} has no route`);
  return found;
};
const requestField = (name: string, field: string) => method(name).requestType.fields[field] as Field;

describe('the contract', () => {
  it('has a verb and a unique path template below /api for every route', () => {
    const routes = restMethods().flatMap(({ bindings }) =>
      bindings.map(({ verb, template }) => `${verb} ${template.replace(/\{\w+\}/g, '{}')}`),
    );
    expect(routes.length).toBeGreaterThan(10);
    expect(new Set(routes).size).toBe(routes.length);
    for (const route of routes) expect(route).toMatch(/^(GET|POST|PUT|PATCH|DELETE) (\/api\/|\/\.well-known\/)/);
  });
  it('lets the gateway call every method that has a route, for some kind of principal or for the public', () => {
    for (const { path, options } of restMethods()) {
      expect({ path, callers: options.callers }).toEqual({ path, callers: expect.arrayContaining(['gateway']) });
      expect({ path, closed: !options.public && options.principals.length === 0 }).toEqual({ path, closed: false });
    }
  });
  it('takes the name of the service from the first segment of the package', () => {
    expect(method('RunAgent').audience).toBe('agents');
    expect(method('GetMemoryType').audience).toBe('memory');
  });
  it('gives the name of the reply body in camelCase', () => {
    expect(method('GetMemoryType').bindings).toEqual([
      { verb: 'GET', template: '/api/memory/types/{id}', body: '', responseBody: 'memoryType' },
    ]);
  });
  it('reads every option of a field, alone and together', () => {
    expect(fieldOptions(requestField('RunAgent', 'args'))).toMatchObject({
      json: true,
      required: true,
      internal: false,
      header: '',
    });
    expect(fieldOptions(requestField('RunAgent', 'idempotencyKey'))).toMatchObject({
      header: 'Idempotency-Key',
      json: false,
    });
    expect(fieldOptions(requestField('UpdateMemoryType', 'pathId'))).toMatchObject({ internal: true });
    expect(fieldOptions(method('ListAgentExecutions').responseType.fields.nextCursor as Field)).toMatchObject({
      link: 'next',
    });
    expect(fieldOptions(requestField('GetMemoryType', 'id'))).toMatchObject({
      json: false,
      required: false,
      omitAbsent: false,
    });
  });
  it('knows which fields distinguish absent from empty', () => {
    expect(hasPresence(requestField('CreateMemoryType', 'type'))).toBe(true);
    expect(hasPresence(requestField('UpdateMemoryType', 'updateMask'))).toBe(true);
    expect(hasPresence(requestField('CreateMemoryType', 'groupNames'))).toBe(false);
    expect(hasPresence(requestField('GetMemoryType', 'id'))).toBe(false);
  });
  it('maps each outcome to its HTTP status', () => {
    const outcome = method('CreateMemoryObject').responseType.fields.outcome as Field;
    expect([...httpStatuses(outcome.resolvedType as Enum)]).toEqual([
      [0, 200],
      [1, 201],
      [2, 200],
    ]);
  });
});
