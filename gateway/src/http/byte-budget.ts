/** Bytes that are held for one request: its body and its reply. */
export interface Permit {
  /** Changes it to this many bytes. @returns false, and changes nothing, if there is no room for them */
  tryResize(bytes: number): boolean;
  /** Changes it to the bytes that are held in fact. */
  resize(bytes: number): void;
  /** Gives all of it back. */
  giveBack(): void;
}

/** The memory for bodies and replies of clients. */
export interface ByteBudget {
  /** @returns undefined if there is no room for so many bytes */
  acquire(organizationId: string, subject: string, bytes: number): Permit | undefined;
}

export interface ByteBudgetLimits {
  totalBytes: number;
  tokenBytes: number;
}

/**
 * Bounds the bytes in flight in all, and those of each token. An organization may hold as many as are free, so one
 * takes at most half, and there is always room for another ("dynamic threshold", Choudhury and Hahne 1998).
 */
export function makeByteBudget({ totalBytes, tokenBytes }: ByteBudgetLimits): ByteBudget {
  let free = totalBytes;
  const ofOrganization = new Map<string, number>();
  const ofToken = new Map<string, number>();

  return {
    acquire(organizationId, subject, wanted) {
      // one user may be in several organizations
      const token = `${organizationId} ${subject}`;
      let held = 0;
      let isGivenBack = false;
      const fits = (more: number): boolean =>
        (ofOrganization.get(organizationId) ?? 0) + more <= free && (ofToken.get(token) ?? 0) + more <= tokenBytes;
      const resize = (bytes: number): void => {
        // a reply may arrive after its client has gone
        if (isGivenBack) return;
        const more = bytes - held;
        free -= more;
        add(ofOrganization, organizationId, more);
        add(ofToken, token, more);
        held = bytes;
      };
      const tryResize = (bytes: number): boolean => {
        // also what is no number does not fit
        if (!(bytes <= held) && !fits(bytes - held)) return false;
        resize(bytes);
        return true;
      };
      const giveBack = (): void => {
        resize(0);
        isGivenBack = true;
      };
      return tryResize(wanted) ? { tryResize, resize, giveBack } : undefined;
    },
  };
}

function add(counts: Map<string, number>, key: string, more: number): void {
  const sum = (counts.get(key) ?? 0) + more;
  if (sum === 0) counts.delete(key);
  else counts.set(key, sum);
}
