/** An answer on its way to the client. */
export interface Reply {
  status: number;
  headers?: Record<string, string>;
  /** JSON text; undefined: no body. */
  body?: string;
}
