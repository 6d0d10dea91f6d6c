select
    case
    when `id` is not null and try_cast(`id` as bigint) is null
    then cast(raise_error(concat('`id` has the value ''', cast(`id` as string), ''', which is no bigint')) as bigint)
    else try_cast(`id` as bigint)
  end as `id`,
    case
    when `it's ``odd``` is not null and try_cast(`it's ``odd``` as decimal(10,2)) is null
    then cast(raise_error(concat('`it\'s ``odd``` has the value ''', cast(`it's ``odd``` as string), ''', which is no decimal(10,2)')) as decimal(10,2))
    else try_cast(`it's ``odd``` as decimal(10,2))
  end as `it's ``odd```
  from openmirroring_seed
