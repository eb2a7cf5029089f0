export function TrendsView(_: { query: URLSearchParams }) {
  return <h1>Trends</h1>;
}
