/** Linear regression. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Returns the slope of the line with the least squares. NaN for fewer than two different x. */
export function slope(points: readonly Point[]): number {
  const mean = (of: (point: Point) => number): number => points.reduce((sum, p) => sum + of(p), 0) / points.length;
  const [x, y] = [mean((p) => p.x), mean((p) => p.y)];
  const sum = (of: (point: Point) => number): number => points.reduce((total, p) => total + of(p), 0);
  return sum((p) => (p.x - x) * (p.y - y)) / sum((p) => (p.x - x) ** 2);
}
