/** Addresses of a subnet, allocated in sequence and reusable after their release. */

export class AddressPool {
  private readonly used = new Set<bigint>();
  private readonly base: bigint;
  private readonly size: bigint;
  private next: bigint;

  /** `cidr` is e.g. `10.10.0.0/16` or `2001:db8::/64`; its first address belongs to the gateway. */
  constructor(
    private readonly cidr: string,
    private readonly version: 4 | 6,
  ) {
    const [address = '', prefix = ''] = cidr.split('/');
    this.base = version === 4 ? parse4(address) : parse6(address);
    this.size = 1n << BigInt((version === 4 ? 32 : 128) - Number(prefix));
    this.next = 2n;
    this.used.add(1n);
  }

  get gateway(): string {
    return this.write(1n);
  }

  /** First and last allocatable address. */
  get range(): { readonly start: string; readonly end: string } {
    return { start: this.write(2n), end: this.write(this.size - 2n) };
  }

  /** Allocates an address. Throws if none is left. */
  take(): string {
    for (let tried = 0n; tried < this.size - 3n; tried += 1n) {
      const offset = this.next;
      this.next = this.next + 1n >= this.size - 1n ? 2n : this.next + 1n;
      if (this.used.has(offset)) continue;
      this.used.add(offset);
      return this.write(offset);
    }
    throw new Error(`no more addresses in ${this.cidr}`);
  }

  giveBack(address: string): void {
    this.used.delete((this.version === 4 ? parse4(address) : parse6(address)) - this.base);
  }

  private write(offset: bigint): string {
    const value = this.base + offset;
    return this.version === 4 ? write4(value) : write6(value);
  }
}

function parse4(text: string): bigint {
  return text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n);
}

function write4(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 255n)).join('.');
}

function parse6(text: string): bigint {
  const [head = '', tail] = text.split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0');
  const groups = [...front, ...(tail === undefined ? [] : zeros), ...back];
  return groups.reduce((sum, group) => (sum << 16n) + BigInt(`0x${group}`), 0n);
}

/** Formats an IPv6 address and omits the zeros between network and host. */
function write6(value: bigint): string {
  const groups = Array.from({ length: 8 }, (_, index) => ((value >> BigInt(112 - 16 * index)) & 0xffffn).toString(16));
  return groups.join(':').replace(/(^|:)0(:0)+(:|$)/, '::');
}
