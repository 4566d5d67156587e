import type { JsonSchema } from './schemas.ts';

/** An OpenAPI 3.1 document. */
export interface OpenApiDocument {
  openapi: string;
  info: JsonSchema;
  servers: readonly { url: string }[];
  tags: readonly { name: string; description: string }[];
  security: readonly JsonSchema[];
  /** By path and lower-case verb. */
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonSchema>; headers: JsonSchema; securitySchemes: JsonSchema };
}
export interface Operation {
  operationId: string;
  tags: readonly string[];
  summary: string;
  security?: readonly JsonSchema[];
  parameters: readonly Parameter[];
  requestBody?: JsonSchema;
  responses: Record<string, ReplyObject>;
}
export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description?: string;
  schema: JsonSchema;
}
export interface ReplyObject {
  description: string;
  headers?: JsonSchema;
  content?: Partial<Record<'application/json' | 'text/event-stream', { schema: JsonSchema; example?: unknown }>>;
}
