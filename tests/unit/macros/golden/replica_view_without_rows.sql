create or replace temporary view openmirroring_replica as select
      cast(null as bigint) as `id`,
      cast(null as string) as `it's ``odd```
    where false
