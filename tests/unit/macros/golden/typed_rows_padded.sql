select
    `id` as `id`,
    case
    when `code` is not null and try_cast(`code` as char(5)) is null
    then cast(raise_error(concat('`code` has the value ''', cast(`code` as string), ''', which is no char(5)')) as char(5))
    else rpad(try_cast(`code` as char(5)), greatest(length(try_cast(`code` as char(5))), 5))
  end as `code`
  from `shop`.`new_rows`
