// From docs/ask.schema.json: npm run types --prefix web

/**
 * Keys are added to, never renamed or removed, while the version stays. The columns of a prepared question, in docs/ask.md, are added to in the same way.
 */
export interface AskDocument {
version: 1
/**
 * The name of the prepared question; null: it was asked in SQL.
 */
question: (string | null)
/**
 * In their order.
 */
columns: {
name: string
/**
 * As DuckDB calls it: BIGINT, VARCHAR, DATE.
 */
type: string
[k: string]: unknown
}[]
/**
 * Each with a member for each column: days and times as ISO 8601 in UTC, durations in seconds, bytes as hexadecimal digits, null for what is not known.
 */
rows: {
[k: string]: unknown
}[]
[k: string]: unknown
}
