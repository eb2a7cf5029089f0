export interface TrendsDocument {
  version: 1;
  trends: {
    day: string;
    provider: string | null;
    model: string | null;
    exchanges: number;
    dead_zones: number;
    codes: { [code: string]: number };
  }[];
}
