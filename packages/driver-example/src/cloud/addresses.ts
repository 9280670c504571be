/** Addresses of instances: one number each, the freed ones first, so that addresses are used again as in real clouds. */

export interface Addresses {
  readonly publicIpv4: string;
  readonly privateIpv4: string;
  readonly publicIpv6: string;
}

/** Hosts of 198.18.0.0/15, which is set aside for benchmarks (RFC 2544): nothing real answers there. */
const HOSTS = 2 ** 17 - 2;

export class AddressPool {
  private readonly free: number[] = [];
  private used = 0;

  /** A number that no instance has; undefined: there is none left. */
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

/** Addresses of an instance. One that listens for ssh does so on this machine. */
export function addressesOf(number: number, local: boolean): Addresses {
  const [high, middle, low] = [number >> 16, (number >> 8) & 255, number & 255];
  return {
    publicIpv4: local ? '127.0.0.1' : `198.${18 + high}.${middle}.${low}`,
    privateIpv4: local ? '127.0.0.1' : `10.${high}.${middle}.${low}`,
    publicIpv6: `2001:db8::${number.toString(16)}`,
  };
}
