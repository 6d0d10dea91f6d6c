select k0, k1, case
      when n > 1 or k0 is null or k1 is null then cast(null as int)
      when n = 0 then 2
      when p = 1 and not differs then -1
      when p > 0 then 1
      else 0
    end as marker
  from (
    select k0, k1, sum(n) as n, sum(p) as p, min(d0) <> max(d0) as differs
    from (
      select /*+ REPARTITION(k0, k1) */ *
      from (
        select `id` as k0, cast(`code` as string) as k1, xxhash64(0, if(`placed` is null, 1, 0) | if(`tags` is null, 2, 0) | if(`status` is null, 4, 0), timestamp_micros(cast(cast(cast(`placed` - timestamp_ntz'1970-01-01 00:00:00' as interval second) as decimal(20, 6)) * 1000000 as bigint)), to_json(map_from_entries(transform(map_entries(`tags`), entry_1 -> struct(trim(both '["]' from to_json(array(entry_1.key), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))) as key, entry_1.value as value))), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS'))), `status`) as d0, 1 as n, 0 as p
        from `shop`.`orders__next` union all
        select `id` as k0, `code` as k1, xxhash64(0, if(`placed` is null, 1, 0) | if(`tags` is null, 2, 0) | 4, timestamp_micros(cast(cast(cast(`placed` - timestamp_ntz'1970-01-01 00:00:00' as interval second) as decimal(20, 6)) * 1000000 as bigint)), to_json(map_from_entries(transform(map_entries(`tags`), entry_1 -> struct(trim(both '["]' from to_json(array(entry_1.key), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))) as key, entry_1.value as value))), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))) as d0, 0 as n, 1 as p
        from `shop`.`orders`
      )
    )
    group by k0, k1
  )
  where n <> 1 or p <> 1 or differs or k0 is null or k1 is null
