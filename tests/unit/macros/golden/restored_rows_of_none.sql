select
    cast(null as bigint) as `id`,
    cast(null as char(3)) as `code`,
    cast(null as timestamp_ntz) as `placed`,
    cast(null as map<date,int>) as `tags`,
    cast(null as string) as `it's ``odd```
  where false
