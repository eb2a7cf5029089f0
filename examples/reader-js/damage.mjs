// A line that is no record, or a first line that is no header; the message says why.
export class Damage extends Error {}
