select file, marker, count(*) as found
  from (
    select _metadata.file_name as file, cast(null as int) as marker
    from parquet.`file:/lake/it's \[odd\]/rows`
  )
  group by file, marker
