(select
      `id` as `id`,
      case
    when `wider` is not null and try_cast(`wider` as bigint) is null
    then cast(raise_error(concat('`wider` has the value ''', cast(`wider` as string), ''', which is no bigint')) as bigint)
    else try_cast(`wider` as bigint)
  end as `wider`,
      case
    when `nested` is not null and try_cast(`nested` as array<bigint>) is null
      or regexp_count(regexp_replace(replace(replace(to_json(try_cast(`nested` as array<bigint>), map('ignoreNullFields', 'false')), '\\\\', ''), '\\"', ''), '"[^"]*"', ''), 'null') > regexp_count(regexp_replace(replace(replace(to_json(`nested`, map('ignoreNullFields', 'false')), '\\\\', ''), '\\"', ''), '"[^"]*"', ''), 'null')
    then cast(raise_error(concat('`nested` has the value ''', cast(`nested` as string), ''', which is no array<bigint>')) as array<bigint>)
    else try_cast(`nested` as array<bigint>)
  end as `nested`,
      `missing` as `missing`
    from `shop`.`orders`)
