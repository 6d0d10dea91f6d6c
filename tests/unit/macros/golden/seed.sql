select
    case
      when `id` is not null and (try_cast(`id` as bigint) is null)
      then cast(raise_error(concat('`id` has the value ''', cast(`id` as string), ''', which is no bigint. Correct the seed.')) as bigint)
      else try_cast(`id` as bigint)
    end as `id`,
    case
      when `it's ``odd``` is not null and (try_cast(`it's ``odd``` as decimal(10,2)) is null
        or case
          when `it's ``odd``` rlike '[eE]' then not try_cast(`it's ``odd``` as double) <=> cast(try_cast(`it's ``odd``` as decimal(10,2)) as double)
          else length(regexp_extract(`it's ``odd```, '[.]([0-9]*[1-9])', 1)) > 2
        end)
      then cast(raise_error(concat('`it\'s ``odd``` has the value ''', cast(`it's ``odd``` as string), ''', which is no decimal(10,2). Correct the seed.')) as decimal(10,2))
      else try_cast(`it's ``odd``` as decimal(10,2))
    end as `it's ``odd```,
    case
      when `day` is not null and (try_cast(`day` as date) is null
        or not trim(`day`) rlike '^[^ T]*([ T][0:.]*Z?)?$')
      then cast(raise_error(concat('`day` has the value ''', cast(`day` as string), ''', which is no date. Correct the seed.')) as date)
      else try_cast(`day` as date)
    end as `day`,
    `name` as `name`
  from openmirroring_seed
