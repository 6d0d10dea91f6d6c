select
    c0 as `it's ``odd```,
    c1 as `tags`,
    case
      when min(surplus) > 0 then 'missing in the mirrored table'
      when max(surplus) < 0 then 'only in the mirrored table'
      else 'different'
    end as `difference`
  from (
    select c0, c1, sum(side) as surplus
    from (
      select
        `it's ``odd``` as c0,
        to_json(map_from_entries(transform(map_entries(`tags`), entry_1 -> struct(trim(both '["]' from to_json(array(entry_1.key), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS')))) as key, entry_1.value as value))), map('ignoreNullFields', 'false', 'timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS', 'XXX'), 'timestampNTZFormat', concat('yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS'))) as c1,
        1 as side
      from `shop`.`orders`
      union all
      select
        cast(`it's ``odd``` as string) as c0,
        cast(`tags` as string) as c1,
        -1 as side
      from openmirroring_replica
    )
    group by c0, c1
    having sum(side) <> 0
  )
  group by
    c0,
    c1
