/** Addresses of instances, derived from one number each. Released numbers are reused first, as in real clouds. */

export interface Addresses {
  readonly publicIpv4: string;
  readonly privateIpv4: string;
  readonly publicIpv6: string;
}

/** Number of hosts in 198.18.0.0/15, which is reserved for benchmarks (RFC 2544), so that no real host responds. */
const HOSTS = 2 ** 17 - 2;

export class AddressPool {
  private readonly free: number[] = [];
  private used = 0;

  /** Allocates a number; returns undefined if none is left. */
  take(): number | undefined {
    const freed = this.free.pop();
    if (freed !== undefined) return freed;
    if (this.used === HOSTS) return undefined;
    this.used += 1;
    return this.used;
  }

  giveBack(number: number): void {
    this.free.push(number);
  }
}

/** Returns the addresses of an instance. An instance that listens for ssh has addresses of this machine. */
export function addressesOf(number: number, local: boolean): Addresses {
  const high = number >> 16;
  const middle = (number >> 8) & 255;
  const low = number & 255;
  return {
    publicIpv4: local ? '127.0.0.1' : `198.${18 + high}.${middle}.${low}`,
    privateIpv4: local ? '127.0.0.1' : `10.${high}.${middle}.${low}`,
    publicIpv6: `2001:db8::${number.toString(16)}`,
  };
}
