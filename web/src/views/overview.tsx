export function OverviewView(_: { query: URLSearchParams }) {
  return <h1>Overview</h1>;
}
