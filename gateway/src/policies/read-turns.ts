/** After a wrong guess, so many right ones are needed until calls are made at once again. */
const DOUBT = 100;

/** The turns of calls that guess how large their replies are. */
export interface Turns {
  /** Resolves when the call may be made. */
  take(): Promise<Turn>;
}
export interface Turn {
  /** The reply is larger than was guessed. */
  wasWrong(): void;
  /** The call has ended; isRight: its reply fitted. */
  end(isRight: boolean): void;
}

/**
 * Lets as many calls be made at once as guesses have been right, and one after a wrong one: a burst of calls cannot
 * follow a few small replies. The same idea as the slow start of TCP (RFC 5681).
 */
export function makeTurns(): Turns {
  const waiting: ((turn: Turn) => void)[] = [];
  let underWay = 0;
  let right = 0;

  function begin(): Turn {
    underWay++;
    return {
      wasWrong() {
        right = -DOUBT;
      },
      end(isRight) {
        underWay--;
        if (isRight) right++;
        while (waiting.length > 0 && underWay < Math.max(1, right)) waiting.shift()?.(begin());
      },
    };
  }

  return {
    take: () =>
      new Promise((resolve) => {
        if (waiting.length === 0 && underWay < Math.max(1, right)) resolve(begin());
        else waiting.push(resolve);
      }),
  };
}
